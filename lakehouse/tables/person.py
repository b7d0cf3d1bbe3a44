"""One person as the tables know them, and how their values are compared."""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

INTEGER = r"^(?:[+]|(-))?0*([0-9]+)(?:[.]0*)?$"
"""An integer as text, with its sign and its digits: the same to Python, Arrow and Java.

A decimal column has 17 as `17.00`, and pandas writes a column with gaps as `17.0`.
"""
_INTEGER = re.compile(INTEGER)
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
    """Return an id as it is compared: without spaces around it, an integer without `+`,
    leading zeros and a fraction of zeros.
    """
    stripped = text.strip()
    integer = _INTEGER.fullmatch(stripped)
    return f"{integer[1] or ''}{integer[2]}" if integer else stripped


def folded(text: str) -> str:
    """Return a personal value as it is compared: without regard to case."""
    return unicodedata.normalize("NFC", text.strip()).lower()


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


def person_hmac(key: bytes, column: str, value: str) -> str:
    """Return what stands for a person where the value is no longer kept: a keyed hash of the
    column and the value, in hexadecimal digits; all forms of an id have one.

    :param value: an id, or a personal value as `folded` returns it.
    """
    message = f"{column}\x00{normal_id(value)}".encode("utf-8", "surrogatepass")
    return hmac.new(key, message, hashlib.sha256).hexdigest()
