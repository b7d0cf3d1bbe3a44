"""One person as the tables know them, and the forms that a value of theirs has."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Person:
    """The values that stand for a person, as text: as Spark casts them to a string, whatever a
    column's type.
    """

    subject: str
    """The column that stands for the person, such as `customer_id`."""
    ids: frozenset[str]
    """Its values; bronze may have one as it was delivered (` 007 `) beside the typed one."""
    personal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What identifies the person directly, by column."""


_INTEGER = re.compile(r"\+?0*([0-9]+)")
_FEWEST_CHARACTERS = 6
_FEWEST_DIGITS = 9


def normal_id(text: str) -> str:
    """Return a value of a subject as all its forms have it: ` +007 ` as `7`.

    Delivered text may have spaces around it, and an integer a sign or leading zeros; the typed
    column of another table has none.
    """
    stripped = text.strip()
    integer = _INTEGER.fullmatch(stripped)
    return integer.group(1) if integer else stripped


def is_distinctive(value: str) -> bool:
    """Whether a value can be told from others in bytes: it has six characters at least, and is
    no integer of fewer than nine digits.
    """
    integer = _INTEGER.fullmatch(value.strip().removeprefix("-"))
    if integer:
        return len(integer.group(1)) >= _FEWEST_DIGITS
    return len(value) >= _FEWEST_CHARACTERS
