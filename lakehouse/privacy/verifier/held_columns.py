"""Which columns have a person in which files: names, with all that a column ever had."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

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
        for pattern, names in self._by_folder:
            if pattern.match(key):
                return names
        return self._elsewhere

    def are_declared(self, key: str) -> bool:
        """Whether a file is of a table, or delivered to one, that has people in it."""
        return any(pattern.match(key) for pattern, _ in self._by_folder)

    @cached_property
    def _by_folder(self) -> list[tuple[re.Pattern[str], Names]]:
        # The longest first: a folder may lie in another.
        folders = [(folder, table) for table in self.tables for folder in table.folders]
        folders.sort(key=lambda item: -len(item[0]))
        return [
            (re.compile(f"{re.escape(folder.strip('/'))}{_UNIQUE_ENDING}/"), _names([table]))
            for folder, table in folders
        ]

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
