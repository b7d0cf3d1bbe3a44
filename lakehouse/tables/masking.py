"""Masking of personal values wherever rows are shown.

Values of masked columns are shown as a keyed hash, so that equal values can be recognized, or
as their shape. Other columns may contain personal data too, such as an e-mail address in the
wrong column. Their values are shown if they are typed numbers, dates or booleans, or if several
people share them. For a command, whose user can read the home, other values are shown too
unless they look personal.
"""

import hashlib
import hmac
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakehouse.tables.table import IcebergTable

_KINDS: Mapping[str, Callable[[str], bool]] = {
    "letters": str.isalpha,
    "digits": str.isdigit,
    "spaces": str.isspace,
    "@": "@".__eq__,
    "dot": ".".__eq__,
    "comma": ",".__eq__,
}
PERSONS = 5
"""The minimum number of people who share a text that is shown."""
PERSON_SAMPLE_ROWS = 1000
"""The number of rows that are scanned to count people."""
READABLE = "__readable"
"""A column with the names of the columns whose delivered text can be cast to their type."""
_MACHINE_FILLED = frozenset({"_source_file", "_source_sha256", "_row_key", "_reasons"})
_TYPED = (bool, int, float, Decimal, date, datetime)
_MOST_DIGITS = 8
"""Texts with more digits may be numbers of a phone, account or card."""
_TITLE_CASE = re.compile(r"\b[^\W\d_a-z]\w*[^\W\d_A-Z]|\b[^\W\d_]\.")
"""A capitalized word or an initial."""
_NESTED = ("[", "{", "(")
"""The first characters of nested values as text."""
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_SHOWN = 100
"""Longer texts, in characters, are not searched for personal data."""
_FEWEST_CHARACTERS = 3
"""Shorter personal values occur in other text by chance."""
Row = Mapping[str, Any]


def mask(key: bytes, value: object) -> str | None:
    """Return `masked:` and twelve hex digits of the value's keyed hash; None stays None."""
    if value is None:
        return None
    return "masked:" + hmac.new(key, str(value).encode(), hashlib.sha256).hexdigest()[:12]


def shape(value: object) -> str:
    """Return the length of a value as text and the kinds of its characters: `17 characters:
    letters, @, dot`.
    """
    text = str(value)
    kinds = [kind for kind, is_kind in _KINDS.items() if any(map(is_kind, text))]
    if any(not any(is_kind(sign) for is_kind in _KINDS.values()) for sign in text):
        kinds.append("other signs")
    return f"{len(text):,} characters: {', '.join(kinds)}" if text else "empty text"


def redacted(
    key: bytes,
    table: IcebergTable,
    rows: Sequence[Row],
    sampled: Iterable[Row] = (),
    *,
    is_compared: bool = False,
    for_command: bool = False,
) -> list[dict[str, Any]]:
    """Return a table's rows for display; unchanged if the table has no personal data.

    :param key: the key of the hash that replaces masked values.
    :param sampled: rows in which people who share a value are counted, including the shown
        ones.
    :param is_compared: whether rows are compared, so that different values must stay
        distinguishable.
    :param for_command: whether a command shows them to a user who can read the home, rather
        than a log or a page.
    """
    if not table.has_personal_data:
        return [_without_readable(row) for row in rows]
    sampled = list(sampled) or rows
    shared = _shared(table, sampled)
    personal_values = _personal_values(table, sampled) if for_command else None
    return [
        _row(key, table.masked_columns, row, shared, personal_values, is_compared=is_compared)
        for row in rows
    ]


def _row(
    key: bytes,
    masked: Collection[str],
    row: Row,
    shared: Collection[tuple[str, str]],
    personal_values: Collection[str] | None,
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
            # The type or the origin of a value rules out personal data.
            or isinstance(value, _TYPED)
            or name in _MACHINE_FILLED
            or (name, str(value)) in shared
            or (personal_values is not None and not _may_be_personal(value, personal_values))
        ):
            shown[name] = value
        else:
            shown[name] = (
                f"{shape(value)} ({mask(key, value)})" if is_compared else shape(value)
            )
    return shown


def _may_be_personal(value: Any, personal_values: Collection[str]) -> bool:
    """Return whether a value has the form of, or contains, a personal value."""
    if not isinstance(value, str) or value.lstrip().startswith(_NESTED):
        return True
    is_like_name = len(value.split()) > 1 and _TITLE_CASE.search(value)
    digits = sum(map(str.isdigit, value))
    is_like_number = "@" in value or digits > _MOST_DIGITS
    if len(value) > _LONGEST_SHOWN or is_like_name or is_like_number:
        return True
    lowered = value.lower()
    return any(value in lowered for value in personal_values)


def _personal_values(table: IcebergTable, rows: Iterable[Row]) -> set[str]:
    """Return the lower-case personal values, and the words of names and addresses."""
    values: set[str] = set()
    for row in rows:
        for name in table.masked_columns:
            text = str(row.get(name) or "").strip().lower()
            values |= {text, *_WORD.findall(text.partition("@")[0])}
    return {value for value in values if len(value) >= _FEWEST_CHARACTERS}


def _without_readable(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != READABLE}


def _shared(table: IcebergTable, rows: Iterable[Row]) -> set[tuple[str, str]]:
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
    """Return the person that a row is about: its subject, or its first personal value."""
    names = (
        [table.subject]
        if table.subject
        else [column.name for column in table.columns if column.personal]
    )
    known = (row[name] for name in names if row.get(name) is not None)
    return next((str(value).strip().lower() for value in known), None)
