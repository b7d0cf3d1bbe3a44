"""One person as the tables know them, and how their values are compared."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_INTEGER = re.compile(r"[+]?0*([0-9]+)")
_SHORTEST_DISTINCTIVE = 6
_DIGITS_OF_A_DISTINCTIVE_INTEGER = 9


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
    """Return an id as it is compared: without spaces around it, an integer without `+` and
    leading zeros.
    """
    stripped = text.strip()
    integer = _INTEGER.fullmatch(stripped)
    return integer[1] if integer else stripped


def is_distinctive(value: str) -> bool:
    """Whether a value can be told from others as bytes.

    It has at least 6 characters, and is not an integer of fewer than 9 digits. Others are
    proved by reading columns alone.
    """
    text = normal_id(value)
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        return len(digits) >= _DIGITS_OF_A_DISTINCTIVE_INTEGER
    return len(text) >= _SHORTEST_DISTINCTIVE
