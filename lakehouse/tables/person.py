"""One person as the tables know them; a value without behaviour."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SHORTEST = 6
_FEWEST_DIGITS = 9
_INTEGER = re.compile(r"[+-]?([0-9]+)")


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


def normal_id(text: str) -> str:
    """Return an id as ids are compared: without spaces around it, and an integer without its `+`
    and leading zeros.
    """
    stripped = text.strip()
    integer = re.fullmatch(r"[+]?0*([0-9]+)", stripped)
    return integer[1] if integer else stripped


def is_distinctive(value: str) -> bool:
    """Whether a value can be told from others where nothing says of which column it is: of six
    characters or more, an integer of nine digits or more.
    """
    integer = _INTEGER.fullmatch(value)
    if integer:
        return len(integer[1]) >= _FEWEST_DIGITS
    return len(value) >= _SHORTEST
