"""How personal values are masked wherever rows are shown, and which other values are shown as they
are.

Values that stand for a person are shown as a keyed hash, so that equal ones can be seen to be
equal, or as their shape. Others may be theirs too, as an e-mail in a wrong column is: they are
shown where they are a number, a date or a boolean of their column's type, or where several
persons share them. Who asks for rows by a command, and so may read the home, is shown others too,
unless they look like what identifies a person.
"""

import hashlib
import hmac
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakehouse.tables.table import IcebergTable

_SIGNS = {
    "@": "@",
    ".": "dot",
    ",": "comma",
    "-": "hyphen",
    "_": "underscore",
    "/": "slash",
    ":": "colon",
    "+": "plus",
}
_KINDS = {
    "L": "letters",
    "M": "letters",
    "N": "digits",
    "Z": "spaces",
    "C": "control characters",
}
_OTHER = "other signs"
_ORDER = ("letters", "digits", "spaces", *_SIGNS.values(), _OTHER, "control characters")
PERSONS = 5
"""As many different persons share a text that is shown."""
COUNTED_ROWS = 1000
"""Rows that are looked at to count them."""
READABLE = "__readable"
"""A column of the names of those columns that hold a delivered text which can be read in their
type.
"""
_MACHINE_FILLED = frozenset({"_source_file", "_source_sha256", "_row_key", "_reasons"})
_TYPED = (bool, int, float, Decimal, date, datetime)
_LIKE_PERSONAL = re.compile(
    r"@"
    # A number of a phone, in which a digit follows the first 0 or three behind a sign, or of a
    # bank account.
    r"|(?<![0-9])(?:\+[0-9]|\(?0(?:[0-9]|[ (/-]+[0-9]{3}))[0-9 ()/-]{5,}[0-9]"
    r"|(?<![0-9])\(?[0-9]{3}\)?[ .-]{1,2}[0-9]{3}[ .-][0-9]{4}(?![0-9])"
    r"|\b[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]{4}){3,}"
    # A number of an account, a card or a person, in one piece or in the groups of cards and of
    # social security; no decimals.
    r"|(?<![0-9])(?<![0-9][.,])[0-9]{9,}"
    r"|(?<![0-9])[0-9]{4}(?P<card>[ .-])(?:[0-9]{4}(?P=card)[0-9]{4}(?P=card)[0-9]{1,7}"
    r"|[0-9]{6}(?P=card)[0-9]{5})(?![0-9])"
    r"|(?<![0-9])[0-9]{3}(?P<social>[ .-])[0-9]{2}(?P=social)[0-9]{4}(?![0-9])"
    # First and last name, and up to two more words.
    r"|^\s*[^\W\d_a-z][\w'’.-]*[^\W\d_A-Z.][\w'’.-]*(?: [^\W\d_][\w'’.-]*){1,3}\s*$"
    # Last and first name, or an initial.
    r"|^\s*[^\W\d_][\w'’-]+,\s?[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,2}\s*$"
    r"|^\s*(?:[^\W\d_a-z]\. ?)+[^\W\d_a-z][\w'’-]+\s*$"
)
_DATE = re.compile(
    r"(?<![0-9./-])(?<![0-9)] )(?:[12][0-9]{3}([-./])[0-9]{1,2}\1[0-9]{1,2}"
    r"|[0-9]{1,2}([-./])[0-9]{1,2}\2[12][0-9]{3})"
    r"(?:(?:T| {1,2})[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?: ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?))?)?(?![0-9/-]| [0-9])"
)
"""A date, also one that there is not, with the time behind it, and no other number beside it: in
digits and signs it is much like a number of a phone, and much like a part of one.
"""
_MOMENT = re.compile(
    r"(?<![0-9])[12][0-9]{3}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9](?:[0-9]{3})?(?![0-9])"
)
"""A moment without a sign, to the second or the millisecond: no card has a number of so many digits
that begins so.
"""
_NESTED = ("[", "{", "(")
"""What a value begins with that holds others, as text."""
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_SHOWN = 100
"""Characters of a longer text that nobody looks through for what it says of people."""
_FEWEST_CHARACTERS = 3
"""Personal values of fewer stand in others by chance."""
Row = Mapping[str, Any]


def mask(key: bytes, value: object) -> str | None:
    """Return `masked:` and twelve hex digits of the value's keyed hash; None stays None."""
    if value is None:
        return None
    return "masked:" + hmac.new(key, str(value).encode(), hashlib.sha256).hexdigest()[:12]


def shape(value: object) -> str:
    """Return the length of a value as text and the kinds of its characters: `17 characters:
    letters, @, dot`.

    The kinds are in an order of their own, so that it tells no more than which there are.
    """
    text = str(value)
    if not text:
        return "empty text"
    kinds = {_kind(character) for character in text}
    named = ", ".join(kind for kind in _ORDER if kind in kinds)
    return f"{len(text):,} character{'' if len(text) == 1 else 's'}: {named}"


def _kind(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    return _KINDS.get(unicodedata.category(character)[0], _OTHER)


def redacted(
    key: bytes,
    table: IcebergTable,
    rows: Sequence[Row],
    counted: Iterable[Row] = (),
    *,
    is_compared: bool = False,
    is_asked_for: bool = False,
) -> list[dict[str, Any]]:
    """Return rows of a table as people are shown them; as they are where it holds no personal
    data.

    :param key: that of the hash which stands for a masked value.
    :param counted: rows to count persons in who share a value, those that are shown among them.
    :param is_compared: whether rows are compared, so that two values of one shape are to be
        told apart.
    :param is_asked_for: whether a command shows them, to who may read the home; not a log or a
        page.
    """
    if not table.holds_personal_data:
        return [_without_readable(row) for row in rows]
    counted = list(counted) or rows
    shared = _shared(table, counted)
    theirs = _personal_values(table, counted) if is_asked_for else None
    return [
        _row(key, table.masked_columns, row, shared, theirs, is_compared=is_compared)
        for row in rows
    ]


def _row(
    key: bytes,
    masked: Collection[str],
    row: Row,
    shared: Collection[tuple[str, str]],
    theirs: Collection[str] | None,
    *,
    is_compared: bool,
) -> dict[str, Any]:
    readable = row.get(READABLE) or ()
    shown = {}
    for name, value in _without_readable(row).items():
        if name in masked:
            shown[name] = mask(key, value)
        elif (
            value is None
            or name in readable
            or _is_open(name, value)
            or (name, str(value)) in shared
            or (theirs is not None and not _looks_personal(value, theirs))
        ):
            shown[name] = value
        else:
            shown[name] = (
                f"{shape(value)} ({mask(key, value)})" if is_compared else shape(value)
            )
    return shown


def _is_open(name: str, value: Any) -> bool:
    """Whether a value tells nothing of a person by its type, or by who made it."""
    return name in _MACHINE_FILLED or isinstance(value, _TYPED)


def _looks_personal(value: Any, theirs: Collection[str]) -> bool:
    """Whether a value may identify a person: by its form, since others are within it, or since it
    has in it what stands in a personal column.
    """
    if not isinstance(value, str) or value.lstrip().startswith(_NESTED):
        return True
    # A date of its column's type is shown too; a birth date stands in a personal column.
    undated = _MOMENT.sub("", _DATE.sub("", value))
    if len(value) > _LONGEST_SHOWN or _LIKE_PERSONAL.search(undated):
        return True
    lowered = value.lower()
    return any(value in lowered for value in theirs)


def _personal_values(table: IcebergTable, rows: Iterable[Row]) -> set[str]:
    """Return what stands in the personal columns of some rows, in lower case: the values, and
    each word of a name, or of what is before the @ of an address.
    """
    values: set[str] = set()
    for row in rows:
        for name in table.masked_columns:
            text = str(row.get(name) or "").strip().lower()
            values |= {text, *_WORD.findall(text.partition("@")[0])}
    return {value for value in values if len(value) >= _FEWEST_CHARACTERS}


def _without_readable(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != READABLE}


def _shared(table: IcebergTable, rows: Iterable[Row]) -> set[tuple[str, str]]:
    """Return the columns and values that rows of several persons share."""
    persons: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        person = _person(table, row)
        if person is None:
            continue
        for name, value in row.items():
            if name not in table.masked_columns:
                persons[name, str(value)].add(person)
    return {value for value, sharing in persons.items() if len(sharing) >= PERSONS}


def _person(table: IcebergTable, row: Row) -> str | None:
    """Return whom a row is about: its subject, or its first personal value where the table has
    no subject.
    """
    names = (
        [table.subject]
        if table.subject
        else [column.name for column in table.columns if column.personal]
    )
    known = (row[name] for name in names if row.get(name) is not None)
    return next((str(value).strip().lower() for value in known), None)
