"""A data subject as stored in the tables, and how values are compared."""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

INTEGER = r"^(?:[+]|(-))?0*([0-9]+)(?:[.]0*)?$"
"""An integer as text, with its sign and digits: equivalent in Python, Arrow and Java.

A decimal column has 17 as `17.00`, and pandas writes a column with gaps as `17.0`.
"""
_INTEGER = re.compile(INTEGER)
_SHORTEST_DISTINCTIVE = 6
_DIGITS_OF_A_DISTINCTIVE_INTEGER = 9


@dataclass(frozen=True)
class Person:
    """The values that identify a person, as Spark casts them to strings."""

    subject: str
    """The identifying column, such as `customer_id`."""
    ids: frozenset[str]
    """The values of that column; bronze may have the delivered form (` 007 `) in addition to
    the typed one.
    """
    personal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Values that identify the person directly, by column."""


def normal_id(text: str) -> str:
    """Normalize an id for comparison: strip spaces, and the `+`, leading zeros and zero
    fraction of an integer.
    """
    stripped = text.strip()
    integer = _INTEGER.fullmatch(stripped)
    return f"{integer[1] or ''}{integer[2]}" if integer else stripped


def folded(text: str) -> str:
    """Normalize a personal value for comparison, ignoring case."""
    return unicodedata.normalize("NFC", text.strip()).lower()


def is_distinctive(value: str) -> bool:
    """Return whether a value is specific enough for a byte search.

    It has at least 6 characters, and is not an integer of fewer than 9 digits. Other values are
    verified only by reading columns.
    """
    text = normal_id(value)
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        return len(digits) >= _DIGITS_OF_A_DISTINCTIVE_INTEGER
    return len(text) >= _SHORTEST_DISTINCTIVE


def person_hmac(key: bytes, column: str, value: str) -> str:
    """Return a keyed hash of the column and the value in hex, used after the value is erased;
    all forms of an id have the same hash.

    :param value: an id, or a personal value from `folded`.
    """
    message = f"{column}\x00{normal_id(value)}".encode("utf-8", "surrogatepass")
    return hmac.new(key, message, hashlib.sha256).hexdigest()
