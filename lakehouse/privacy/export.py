"""All rows that tables have of people now, as who asks for access is given them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lakehouse.errors import TypeUnsupported
from lakehouse.iceberg.erasure.find_rows import FileRows, find_rows
from lakehouse.iceberg.erasure.person_columns import person_columns
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.erased_people import people_in
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.identity import Identity
from lakehouse.privacy.table_reading import explained
from lakehouse.tables.person import Person
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class HeldRow:
    """A row that a table has of a person."""

    table: str
    row: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Export:
    """What was found, and where it was looked for."""

    rows: tuple[HeldRow, ...] = field(repr=False)
    tables: tuple[str, ...]
    """The tables that were looked at."""
    shared_rows: int
    """Rows left out: only a value is in them that somebody else has as well."""
    unsearched: Mapping[str, tuple[str, ...]]
    """Tables that nobody declared, and their columns with names of those that are about people:
    whether they are cannot be told.
    """
    unsupported: Mapping[str, str]
    """Tables that nobody declared and only Spark reads, and why."""


def export_people(
    engine: Engine,
    subjects: Sequence[Subject],
    identities: Sequence[Identity],
    declared: Mapping[str, IcebergTable],
) -> Export:
    """Return the rows that readers see of some people: those that an erasure deletes; no JVM.

    :param declared: the declared tables, by name.
    """
    holders: dict[str, dict[Holder, list[Identity]]] = {}
    for identity in identities:
        for holder in identity.subject.holders:
            if engine.catalog.has(holder.table):
                holders.setdefault(holder.table, {}).setdefault(holder, []).append(identity)
    rows: list[HeldRow] = []
    shared_rows = 0
    for name in sorted(holders):
        loaded = engine.catalog.load(name)
        own, with_shared = _people(holders[name], is_own=True), _people(holders[name])
        found = _positions(loaded, declared[name], own)
        rows += [HeldRow(name, row) for row in explained(loaded, partial(_rows, loaded, found))]
        if with_shared != own:
            shared_rows += _count(_positions(loaded, declared[name], with_shared))
            shared_rows -= _count(found)
    columns, unsupported = undeclared_columns(engine, subjects, declared)
    return Export(tuple(rows), tuple(sorted(holders)), shared_rows, columns, unsupported)


def _people(
    holders: Mapping[Holder, Sequence[Identity]], *, is_own: bool = False
) -> list[Person]:
    """Return people as a table names their columns.

    :param is_own: whether values that another person has too are omitted.
    """
    people = []
    for holder, identities in holders.items():
        for identity in identities:
            shared = frozenset[str]().union(*identity.shared.values())
            people += people_in(holder, [identity.person], shared if is_own else frozenset())
    return people


def _positions(
    loaded: "Table", table: IcebergTable, people: Sequence[Person]
) -> "list[FileRows]":
    snapshot = loaded.current_snapshot()
    if snapshot is None:
        return []
    columns = person_columns(table, loaded, people)
    return list(explained(loaded, lambda: find_rows(loaded, columns, snapshot.snapshot_id)))


def _count(files: "Iterable[FileRows]") -> int:
    return sum(file.rows for file in files)


def _rows(loaded: "Table", files: "Iterable[FileRows]") -> Iterator[dict[str, Any]]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import FileScanTask

    scan = ArrowScan(loaded.metadata, loaded.io, loaded.schema(), AlwaysTrue())
    for file in files:
        if file.rows:
            yield from scan.to_table([FileScanTask(file.file)]).take(file.positions).to_pylist()


def undeclared_columns(
    engine: Engine, subjects: Sequence[Subject], declared: Iterable[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return, by table that nobody declared, its columns that are called as those about people
    are, and the tables whose columns cannot be told, with why; in Glue, which has the databases of
    a whole account, of tables beside declared ones.
    """
    names, names_declared = set[str](), set(declared)
    for subject in subjects:
        names |= subject.names.union(*subject.personal)
    columns, unsupported = {}, {}
    for table in sorted(set(engine.catalog.tables(names_declared)) - names_declared):
        try:
            fields = engine.catalog.load(table).schema().fields
        except TypeUnsupported as error:
            unsupported[table] = str(error)
            continue
        alike = tuple(field.name for field in fields if field.name.lower() in names)
        if alike:
            columns[table] = alike
    return columns, unsupported
