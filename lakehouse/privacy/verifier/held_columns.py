"""Which columns have a person in which files: names, with all that a column ever had."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

_UNIQUE_ENDING = r"(-[0-9a-f-]{32,36})?"
"""What a table's location ends in, so that no other table has the same."""
_NAMES_OF_MANY = frozenset({"id", "key", "name", "value"})
"""Fields that anything has: outside of rows they stand for nobody."""


class HeldColumn(NamedTuple):
    """A column as it is declared: what stands for a person, or identifies one directly."""

    name: str
    is_subject: bool


@dataclass(frozen=True)
class HeldColumns:
    """The columns of a table, or of the files that are delivered to it, that have people in
    them.
    """

    folders: Sequence[str]
    """Where they are, below a home or a bucket, such as `warehouse/bronze/raw` and
    `archive/raw`.
    """
    subjects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By subject, the names that its column has or had, also as a header of files."""
    personal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The same by personal column."""
    fields: Mapping[int, str] = field(default_factory=dict)
    """Iceberg's field ids of these columns, each with a name of the column: data files have
    `Member-No` as `Member_x2DNo`.
    """
    schema: pa.Schema | None = None
    """Columns of the table's data files, for the control."""


Names = Mapping[str, tuple[HeldColumn, ...]]
"""By a name in a file, what stands under it."""


@dataclass(frozen=True)
class ColumnNames:
    """The names of all tables."""

    tables: Sequence[HeldColumns]

    def of(self, key: str) -> Names:
        """Return the names that count in a file; where it is no table's, those of all tables
        together, but for those that anything has.
        """
        found = self._table_of(key)
        return found[0] if found else self._elsewhere

    def fields_of(self, key: str) -> Mapping[int, str]:
        """Return the names that count in a file by field id."""
        found = self._table_of(key)
        return found[1] if found else {}

    def are_declared(self, key: str) -> bool:
        """Whether a file is of a table, or delivered to one, that has people in it."""
        return self._table_of(key) is not None

    def _table_of(self, key: str) -> tuple[Names, Mapping[int, str]] | None:
        return next((held for pattern, held in self._by_folder if pattern.match(key)), None)

    @cached_property
    def _by_folder(self) -> list[tuple[re.Pattern[str], tuple[Names, Mapping[int, str]]]]:
        # A table may hold people of several subjects.
        tables: dict[str, list[HeldColumns]] = {}
        for table in self.tables:
            for folder in table.folders:
                tables.setdefault(folder.strip("/"), []).append(table)
        # The longest first: a folder may lie in another.
        by_folder = []
        for folder in sorted(tables, key=len, reverse=True):
            fields: Mapping[int, str] = dict(
                item for one in tables[folder] for item in one.fields.items()
            )
            pattern = re.compile(f"{re.escape(folder)}{_UNIQUE_ENDING}/")
            by_folder.append((pattern, (_names(tables[folder]), fields)))
        return by_folder

    @cached_property
    def _elsewhere(self) -> Names:
        return without_names_of_many(_names(self.tables))


def without_names_of_many(names: Names) -> Names:
    """Return the names that stand for somebody wherever they are: Iceberg's metadata has an `id`
    of each column, which is nobody's.
    """
    return {name: held for name, held in names.items() if name not in _NAMES_OF_MANY}


def _names(tables: Sequence[HeldColumns]) -> Names:
    found: dict[str, dict[HeldColumn, None]] = {}
    for table in tables:
        for columns, is_subject in ((table.subjects, True), (table.personal, False)):
            for column, names in columns.items():
                for name in {column, *names}:
                    held = HeldColumn(column, is_subject)
                    found.setdefault(name.strip().lower(), {})[held] = None
    return {name: tuple(held) for name, held in found.items()}


def held_in(names: Names, path: Sequence[str]) -> tuple[HeldColumn, ...]:
    """Return what stands in a column, or in a field of a nested one: a part of its path has the
    name.
    """
    held: dict[HeldColumn, None] = {}
    for part in path:
        held.update(dict.fromkeys(names.get(part.strip().lower(), ())))
    return tuple(held)
