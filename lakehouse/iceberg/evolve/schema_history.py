"""History of a table's columns and layout: changes, times and runs; no JVM, no data scan.

Column changes come from the schemas of main's retained snapshots, so each belongs to a commit,
and unpublished ones are left out. Snapshots contain no partitioning and sort order: their changes
come from the retained metadata files, and are only read if there was any.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from lakehouse.iceberg.evolve.schema_difference import (
    Change,
    partition_terms,
    schema_difference,
    sort_terms,
)
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import Snapshot, from_milliseconds, history_of

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True)
class SchemaChange:
    """One change of a table.

    `snapshot` is the first one with the change; None if there is none yet, and for partitioning
    and sort order, which have none.
    """

    change: Change
    at: datetime
    snapshot: Snapshot | None = None

    @property
    def run_id(self) -> str:
        """The Dagster run that made the snapshot; empty if none did."""
        commit = self.snapshot.commit if self.snapshot else None
        return commit.run_id if commit else ""


def read_schema_history(engine: Engine, table: str) -> list[SchemaChange]:
    """Return the changes of a table's columns since its oldest retained snapshot, and of its
    partitioning and sort order, oldest first.

    :raises TableNotFound: if the catalog has no such table.
    """
    loaded = engine.catalog.load(table)
    changes = [*_columns(table, loaded), *_layout(loaded)]
    # Sorting is stable for changes in one commit.
    return sorted(changes, key=lambda change: change.at)


def _columns(name: str, table: "Table") -> Iterator[SchemaChange]:
    history, schemas = history_of(name, table), table.schemas()
    published_at = {snapshot_id: at for at, snapshot_id in reversed(history.log)}
    updated_at = from_milliseconds(table.metadata.last_updated_ms)
    line = history.line[::-1]
    first = "table created" if not line or line[0].parent_id is None else "oldest snapshot"
    latest: int | None = None
    # The first branch of an empty table creates an empty snapshot without commit properties.
    for snapshot in (snapshot for snapshot in line if snapshot.commit or snapshot.rows):
        schema_id = latest if snapshot.schema_id is None else snapshot.schema_id
        if schema_id is None:
            continue
        at = published_at.get(snapshot.snapshot_id, snapshot.committed_at)
        if latest is None:
            yield SchemaChange(_table(first, schemas[schema_id]), at, snapshot)
        else:
            yield from _differences(schemas, latest, schema_id, at, snapshot)
        latest = schema_id
    # A schema without a snapshot was set by the last metadata update, or before.
    current = table.metadata.current_schema_id
    if latest is None:
        yield SchemaChange(_table(first, schemas[current]), updated_at)
    else:
        yield from _differences(schemas, latest, current, updated_at)


def _table(what: str, schema: "Schema") -> Change:
    return Change(what, after=f"{len(schema.fields)} columns")


def _differences(
    schemas: "dict[int, Schema]",
    before: int,
    after: int,
    at: datetime,
    snapshot: Snapshot | None = None,
) -> Iterator[SchemaChange]:
    if before != after:
        for change in schema_difference(schemas[before], schemas[after]):
            yield SchemaChange(change, at, snapshot)


def _layout(table: "Table") -> Iterator[SchemaChange]:
    if len(table.specs()) == 1 and len(table.sort_orders()) == 1:
        return
    for before, after in pairwise(_metadata_versions(table)):
        at = from_milliseconds(after.last_updated_ms)
        for change in _layout_difference(before, after):
            yield SchemaChange(change, at)


def _layout_difference(before: "TableMetadata", after: "TableMetadata") -> Iterator[Change]:
    if before.default_spec_id != after.default_spec_id:
        yield Change("partitioning changed", "", _partitioning(before), _partitioning(after))
    if before.default_sort_order_id != after.default_sort_order_id:
        yield Change("sort order changed", "", _sort_order(before), _sort_order(after))


def _partitioning(metadata: "TableMetadata") -> str:
    return partition_terms(metadata.spec(), metadata.schema())


def _sort_order(metadata: "TableMetadata") -> str:
    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    return sort_terms(order, metadata.schema()) if order else ""


def _metadata_versions(table: "Table") -> "Iterator[TableMetadata]":
    """Yield the existing earlier metadata files, oldest first, and the current one."""
    from pyiceberg.serializers import FromInputFile

    for entry in table.metadata.metadata_log:
        file = table.io.new_input(entry.metadata_file)
        if file.exists():
            yield FromInputFile.table_metadata(file)
    yield table.metadata
