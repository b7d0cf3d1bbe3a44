"""Exports all rows that tables contain of people now, for requests for access."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse.errors import TypeUnsupported
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.find_rows import FileRows, find_rows, person_columns
from lakehouse.privacy.erasable import people_in
from lakehouse.privacy.holders import Subject
from lakehouse.privacy.identity import Identity
from lakehouse.privacy.table_values import shared_values
from lakehouse.tables.person import Person
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class HeldRow:
    """A row of a person."""

    table: str
    row: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Export:
    """The rows of some people, and the tables that were searched."""

    rows: tuple[HeldRow, ...] = field(repr=False)
    tables: tuple[str, ...]
    shared_rows: int
    """Omitted rows: they contain only a value that another person has too."""
    unsearched: Mapping[str, tuple[str, ...]]
    """Undeclared tables, and their columns with names of columns about people."""
    unsupported: Mapping[str, str]
    """Undeclared tables that only Spark reads, and why."""


def export_people(
    engine: Engine,
    subjects: Sequence[Subject],
    identities: Sequence[Identity],
    declared: Mapping[str, IcebergTable],
) -> Export:
    """Return the rows of some people that readers see: those that an erasure deletes; no JVM.

    :param declared: the declared tables, by name.
    """
    persons = [identity.person for identity in identities]
    shared = shared_values(engine, subjects, persons)
    own: dict[str, list[Person]] = {}
    with_shared: dict[str, list[Person]] = {}
    for identity in identities:
        for holder in identity.subject.holders:
            if engine.catalog.has(holder.table):
                people = with_shared.setdefault(holder.table, [])
                people += people_in(holder, [identity.person], frozenset())
                people = own.setdefault(holder.table, [])
                people += people_in(holder, [identity.person], shared)
    rows: list[HeldRow] = []
    shared_rows = 0
    for name in sorted(own):
        loaded = engine.catalog.load(name)
        found = _find(loaded, declared[name], own[name])
        rows += [HeldRow(name, row) for row in _rows(loaded, found)]
        if with_shared[name] != own[name]:
            all_found = _find(loaded, declared[name], with_shared[name])
            shared_rows += sum(file.rows for file in all_found)
            shared_rows -= sum(file.rows for file in found)
    columns, unsupported = undeclared_columns(engine, subjects, declared)
    return Export(tuple(rows), tuple(sorted(own)), shared_rows, columns, unsupported)


def _find(loaded: "Table", table: IcebergTable, people: Sequence[Person]) -> list[FileRows]:
    snapshot = loaded.current_snapshot()
    if snapshot is None:
        return []
    return find_rows(loaded, person_columns(table, loaded, people), snapshot.snapshot_id)


def _rows(loaded: "Table", files: Iterable[FileRows]) -> Iterator[dict[str, Any]]:
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
    """Return columns of undeclared tables with names of columns about people, and the tables that
    cannot be read, with why. In Glue, only tables next to declared ones are listed.
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
        same_names = tuple(one.name for one in fields if one.name.lower() in names)
        if same_names:
            columns[table] = same_names
    return columns, unsupported
