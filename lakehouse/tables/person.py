"""Columns about data subjects, and their values as stored in the tables."""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lakehouse.tables.column import Column
from lakehouse.tables.table import IcebergTable

Sources = Mapping[str, Collection[str]]
"""The source tables of each table."""


@dataclass(frozen=True, order=True)
class Origin:
    """A column that is declared as personal or as the subject."""

    table: str
    column: str
    is_subject: bool

    def __str__(self) -> str:
        role = "the subject" if self.is_subject else "personal"
        return f"{role} in {self.table}"


Origins = Mapping[str, frozenset[Origin]]
"""The declared origins of each column about people."""


def origins_of(tables: Mapping[str, IcebergTable], sources: Sources) -> dict[str, Origins]:
    """Return the columns about people by table, each with its declared origins."""
    known = {name: _declared(table) for name, table in tables.items()}
    is_changing = True
    while is_changing:
        is_changing = False
        for name, table in tables.items():
            for source in sources.get(name, ()):
                if source in tables and source != name:
                    is_changing |= _inherit(table, known[name], tables[source], known[source])
    return {
        name: {column: frozenset(columns[column]) for column in sorted(columns)}
        for name, columns in known.items()
    }


def names_of(column: Column) -> frozenset[str]:
    """Return the current and former names of a column in lower case, as Spark compares them."""
    return frozenset(name.lower() for name in (column.name, *column.renamed_from))


def _declared(table: IcebergTable) -> dict[str, set[Origin]]:
    columns = {
        name: {Origin(table.name, name, is_subject=False)} for name in table.personal_columns
    }
    if table.subject:
        origin = Origin(table.name, table.subject, is_subject=True)
        columns.setdefault(table.subject, set()).add(origin)
    return columns


def _inherit(
    table: IcebergTable,
    own: dict[str, set[Origin]],
    source: IcebergTable,
    inherited: Mapping[str, set[Origin]],
) -> bool:
    """Add the origins of a source's columns to equally named ones; return if any changed."""
    is_changed = False
    for name in sorted(inherited):
        names = names_of(source.column(name))
        for column in table.columns:
            if names_of(column) & names and not inherited[name] <= own.get(column.name, set()):
                own.setdefault(column.name, set()).update(inherited[name])
                is_changed = True
    return is_changed


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
    """The values of that column, as delivered (` 007 `) and as typed."""
    personal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Values that identify the person directly, by column."""


def normal_id(text: str) -> str:
    """Normalize an id: without spaces, and an integer without `+`, zeros and fraction."""
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
