"""History of a table's columns and layout: changes, times and runs; no JVM, no data scan.

Column changes come from the schemas of main's snapshots, so each belongs to a commit, and
unpublished ones are left out. Snapshots contain no partitioning and sort order: their changes
come from the retained metadata files, and are only read if there was any.
"""

from collections.abc import Generator, Iterator, Sequence
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

    `at` is None if the metadata with its time has expired. `snapshot` is the first one with the
    change; None if there is none yet, and for partitioning and sort order, which have none.
    """

    change: Change
    at: datetime | None
    snapshot: Snapshot | None = None

    @property
    def run_id(self) -> str:
        """The Dagster run that made the snapshot; empty if none did."""
        commit = self.snapshot.commit if self.snapshot else None
        return commit.run_id if commit else ""


def read_schema_history(engine: Engine, table: str) -> list[SchemaChange]:
    """Return the changes of a table's columns, partitioning and sort order, oldest first.

    Changes at an unknown time come first.

    :raises TableNotFound: if the catalog has no such table.
    """
    loaded = engine.catalog.load(table)
    changes = [*_columns(table, loaded), *_layout(loaded)]
    # Sorting is stable for changes in one commit.
    return sorted(changes, key=lambda change: change.at.timestamp() if change.at else 0.0)


def _columns(name: str, table: "Table") -> Iterator[SchemaChange]:
    history, schemas = history_of(name, table), table.schemas()
    seen = history.line[::-1]
    made = {snapshot_id: at for at, snapshot_id in reversed(history.log)}
    latest = yield from _beginning(table, seen)
    for snapshot in seen:
        schema_id = latest if snapshot.schema_id is None else snapshot.schema_id
        at = made.get(snapshot.snapshot_id, snapshot.committed_at)
        yield from _differences(schemas, latest, schema_id, at, snapshot)
        latest = schema_id
    # A schema without a snapshot was set by the last metadata update, or before.
    yield from _differences(
        schemas,
        latest,
        table.metadata.current_schema_id,
        from_milliseconds(table.metadata.last_updated_ms),
    )


def _beginning(table: "Table", seen: Sequence[Snapshot]) -> Generator[SchemaChange, None, int]:
    """Yield the creation, and changes before the first retained snapshot; return the schema at
    that time.
    """
    schemas = table.schemas()
    known = [snapshot.schema_id for snapshot in seen if snapshot.schema_id is not None]
    if not seen or seen[0].parent_id is None:
        first = known[0] if known else table.metadata.current_schema_id
        times = [entry.timestamp_ms for entry in table.metadata.metadata_log] or [
            table.metadata.last_updated_ms
        ]
        # The first branch of an empty table creates an empty snapshot without commit
        # properties.
        written = next(
            (snapshot for snapshot in seen if snapshot.commit or snapshot.rows), None
        )
        yield SchemaChange(_creation(schemas[first]), from_milliseconds(min(times)), written)
        return first
    # The first snapshots have expired: their changes are known, but not the times.
    earlier = [schema_id for schema_id in sorted(schemas) if not known or schema_id <= known[0]]
    yield SchemaChange(_creation(schemas[earlier[0]]), None)
    for before, after in pairwise(earlier):
        yield from _differences(schemas, before, after, None)
    return earlier[-1]


def _creation(schema: "Schema") -> Change:
    return Change("table created", after=f"{len(schema.fields)} columns")


def _differences(
    schemas: "dict[int, Schema]",
    before: int,
    after: int,
    at: datetime | None,
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
