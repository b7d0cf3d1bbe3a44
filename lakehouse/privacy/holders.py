"""Derives from the declarations which tables contain a person, and in which columns.

A subject is a kind of person, such as customers. Tables identify it by the columns that they
declare as `subject`, and by columns computed from these. The same name means the same subject in
all tables. Former names (`renamed_from`) connect a column with itself, and with the columns of
tables that read it.

A `personal` column belongs to the subject of its table. A column of the same name in a table
without a subject is searched for a person's values too. A subject column can be personal in
another table: a newsletter identifies its readers by an address, which a customer has too.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import TypeVar

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.erasure.suppression_list import RowTimestamp
from lakehouse.tables.column import Column
from lakehouse.tables.feed import Feed
from lakehouse.tables.person import Origin, Origins, Person, Sources, names_of, origins_of
from lakehouse.tables.table import IcebergTable

T = TypeVar("T")


@dataclass(frozen=True)
class Holder:
    """A table that contains people of a subject, and the columns with their values.

    In a table with a subject, the entire row belongs to the person in `row_column`. In any other
    table only a value does: the row can belong to another person, or to none.
    """

    table: str
    ids: tuple[Column, ...]
    """Columns with ids of people."""
    personal: tuple[Column, ...]
    """Columns with values that identify people directly."""
    row_column: Column | None
    """The column that identifies the person of a row; None without a subject, or with another
    one.
    """

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, each once."""
        return tuple(dict.fromkeys((*self.ids, *self.personal)))

    @property
    def is_by_id(self) -> bool:
        """Whether an id identifies the person of a row."""
        return self.row_column is not None and self.row_column in self.ids


@dataclass(frozen=True)
class Subject:
    """A kind of person, and the tables that contain people of it."""

    name: str
    """The most common name of the id column."""
    names: frozenset[str]
    """All names of the id column, in lower case."""
    personal: tuple[frozenset[str], ...]
    """For each kind of personal value, all names of its column, in lower case."""
    holders: tuple[Holder, ...]

    def personal_names(self, name: str) -> frozenset[str]:
        """Return all names of the personal column with a name; empty if it is none."""
        for names in self.personal:
            if name.lower() in names:
                return names
        return frozenset()


def find_subjects(tables: Mapping[str, IcebergTable], sources: Sources) -> tuple[Subject, ...]:
    """Return the subjects of some tables, by name.

    A personal column without a subject is a subject of its own, identified by its values: they
    are compared as ids, and as personal values.

    :param sources: by table, the tables that it is computed from.
    """
    origins = origins_of(tables, sources)
    declared = {
        Origin(table.name, table.subject, is_subject=True)
        for table in tables.values()
        if table.subject
    }
    without_subject = {
        origin
        for name, columns in origins.items()
        for of_column in columns.values()
        for origin in of_column
        if origin.table == name and tables[name].subject is None
    }
    used: set[Origin] = set()
    subjects = []
    for kind in _connected(declared, origins):
        other_values = without_subject | (declared - kind)
        personal = _personal_kinds(tables, origins, kind, other_values)
        used.update(*personal)
        subjects.append(_subject(tables, origins, kind, personal))
    for kind in _connected(without_subject - used, origins):
        subjects.append(_subject(tables, origins, kind, [kind]))
    return tuple(sorted(subjects, key=lambda subject: subject.name))


def _personal_kinds(
    tables: Mapping[str, IcebergTable],
    origins: Mapping[str, Origins],
    kind: frozenset[Origin],
    other_values: set[Origin],
) -> list[frozenset[Origin]]:
    """Return the kinds of personal values of a subject, each as its declared columns.

    :param other_values: columns that can contain the same values in other tables.
    """
    own = {
        Origin(name, column, is_subject=False)
        for name in {origin.table for origin in kind}
        for column in tables[name].personal_columns
    }
    return [values for values in _connected(own | other_values, origins) if values & own]


def _connected(
    declared: Collection[Origin], origins: Mapping[str, Origins]
) -> list[frozenset[Origin]]:
    """Group declared columns with the same name, and those that are inputs of the same column."""
    by_name: dict[str, set[Origin]] = {}
    for origin in declared:
        by_name.setdefault(origin.column.lower(), set()).add(origin)
    groups = list(by_name.values())
    for columns in origins.values():
        groups.extend(set(of_column) & set(declared) for of_column in columns.values())
    return sorted(_disjoint(groups), key=min)


def _disjoint(groups: Iterable[Collection[T]]) -> list[frozenset[T]]:
    """Unite groups that have a common member."""
    disjoint: list[frozenset[T]] = []
    for group in groups:
        overlapping = [one for one in disjoint if not one.isdisjoint(group)]
        disjoint = [one for one in disjoint if one.isdisjoint(group)]
        disjoint.append(frozenset(group).union(*overlapping))
    return [group for group in disjoint if group]


def _subject(
    tables: Mapping[str, IcebergTable],
    origins: Mapping[str, Origins],
    kind: frozenset[Origin],
    personal_kinds: list[frozenset[Origin]],
) -> Subject:
    holders = []
    all_personal = frozenset().union(*personal_kinds)
    for name, table in sorted(tables.items()):
        ids = _columns(table, origins[name], kind)
        personal = _columns(table, origins[name], all_personal)
        if ids or personal:
            rows = [column for column in (*ids, *personal) if column.name == table.subject]
            row_column = rows[0] if rows else None
            holders.append(Holder(name, ids, personal, row_column))
    # A former name can be that of another column today: both are searched for the same values.
    names = [_names(tables, origins, one) for one in personal_kinds]
    columns = sorted(origin.column for origin in kind)
    return Subject(
        name=max(columns, key=columns.count),
        names=_names(tables, origins, kind),
        personal=tuple(sorted(_disjoint(names), key=min)),
        holders=tuple(holders),
    )


def _columns(
    table: IcebergTable, origins: Origins, declared: frozenset[Origin]
) -> tuple[Column, ...]:
    return tuple(table.column(name) for name in origins if origins[name] & declared)


def _names(
    tables: Mapping[str, IcebergTable],
    origins: Mapping[str, Origins],
    declared: frozenset[Origin],
) -> frozenset[str]:
    names: set[str] = set()
    for name, table in tables.items():
        for column in _columns(table, origins[name], declared):
            names |= names_of(column)
    return frozenset(names)


def subject_of(subjects: Iterable[Subject], person: Person) -> Subject:
    """Return the subject of a person, or of the personal value that identifies the person.

    :raises LakehouseError: if no table declares it any more.
    """
    name = person.subject.lower()
    known = list(subjects)
    for subject in known:
        if name in subject.names:
            return subject
    for subject in known:
        if subject.personal_names(name):
            return subject
    raise LakehouseError(
        f"{person.subject} identifies people in no table; expected a subject or a personal column"
        " that a table declares.",
        next_step=(
            "Declare it again, as it was when the request was made, until the request is"
            " verified."
        ),
    )


def subject_names(subjects: Iterable[Subject]) -> dict[str, Collection[str]]:
    """Return all names of the subject column in any table, by table with a subject."""
    names: dict[str, Collection[str]] = {}
    for subject in subjects:
        for holder in subject.holders:
            if holder.is_by_id:
                names[holder.table] = subject.names
    return names


def row_moments(
    tables: Mapping[str, IcebergTable], feeds: Iterable[Feed], sources: Sources
) -> dict[str, RowTimestamp]:
    """Return the column that contains when a row was created, by table.

    It is the first of the table's `versions.newest`, else the column that its feed declares, else
    the column of a table that it is computed from, if it has that column too. A quarantine has
    the column of its table.

    :param sources: by table, the tables that it is computed from.
    """
    columns = {
        feed.table: RowTimestamp(feed.moment, feed.time_zone) for feed in feeds if feed.moment
    }
    graph = {name: set(sources.get(name, ())) - {name} for name in sorted(tables)}
    for name in TopologicalSorter(graph).static_order():
        table = tables.get(name)
        if table is None:
            continue
        if table.versions:
            column = table.versions.newest[0]
            cast = table.casts.get(column)
            columns[name] = (
                RowTimestamp(column, cast.time_zone) if cast else RowTimestamp(column)
            )
        for source in sorted(graph[name]):
            inherited = columns.get(source)
            if inherited and name not in columns and inherited.column in table.column_names:
                columns[name] = inherited
        if table.quarantine and name in columns:
            columns[table.quarantine.name] = columns[name]
    return columns
