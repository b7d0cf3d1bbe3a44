"""History of a table's columns and layout: changes, times and runs; no JVM, no data scan.

Column changes come from the schemas of main's retained snapshots, so each belongs to a commit,
and unpublished ones are left out. Snapshots contain no partitioning and sort order: their changes
come from the retained metadata files, and are only read if there was any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.schema_steps import Path, dotted
from lakehouse.iceberg.metadata.snapshots import Snapshot, from_milliseconds, history_of
from lakehouse.iceberg.metadata.table_state import parse_partition_fields, parse_sort_fields
from lakehouse.iceberg.metadata.type_conversion import column_type

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import IcebergType, NestedField


@dataclass(frozen=True)
class Change:
    """One difference; `before` or `after` is empty for additions and removals."""

    what: str
    """Such as `column added`, `column renamed`, `type widened`, `partitioning changed`."""
    name: str = ""
    """The column, or the path to a nested field, by its new name."""
    before: str = ""
    after: str = ""


def _fields(
    path: Path, before: "Sequence[NestedField]", after: "Sequence[NestedField]"
) -> Iterator[Change]:
    earlier = {field.field_id: field for field in before}
    later = {field.field_id: field for field in after}
    for field_id, field in earlier.items():
        if field_id not in later:
            yield Change(
                "column dropped",
                dotted((*path, field.name)),
                before=str(column_type(field.field_type)),
            )
    for field_id, field in later.items():
        if field_id in earlier:
            yield from _field(path, earlier[field_id], field)
        else:
            yield Change(
                "column added",
                dotted((*path, field.name)),
                after=str(column_type(field.field_type)),
            )


def _field(path: Path, before: "NestedField", after: "NestedField") -> Iterator[Change]:
    name = dotted((*path, after.name))
    if before.name != after.name:
        yield Change("column renamed", name, before.name, after.name)
    yield from _types((*path, after.name), before.field_type, after.field_type)
    if (before.doc or "") != (after.doc or ""):
        yield Change("comment changed", name, before.doc or "", after.doc or "")
    if before.required != after.required:
        yield Change("may be NULL" if before.required else "may not be NULL", name)


def _types(path: Path, before: "IcebergType", after: "IcebergType") -> Iterator[Change]:
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(before, StructType) and isinstance(after, StructType):
        yield from _fields(path, before.fields, after.fields)
    elif isinstance(before, ListType) and isinstance(after, ListType):
        yield from _types((*path, "element"), before.element_type, after.element_type)
    elif isinstance(before, MapType) and isinstance(after, MapType):
        yield from _types((*path, "key"), before.key_type, after.key_type)
        yield from _types((*path, "value"), before.value_type, after.value_type)
    elif before != after:
        # Iceberg only widens types.
        yield Change(
            "type widened", dotted(path), str(column_type(before)), str(column_type(after))
        )


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
        for change in _fields((), schemas[before].fields, schemas[after].fields):
            yield SchemaChange(change, at, snapshot)


def _layout(table: "Table") -> Iterator[SchemaChange]:
    if len(table.specs()) == 1 and len(table.sort_orders()) == 1:
        return
    for before, after in pairwise(_metadata_versions(table)):
        at = from_milliseconds(after.last_updated_ms)
        if before.default_spec_id != after.default_spec_id:
            terms = _partitioning(before), _partitioning(after)
            yield SchemaChange(Change("partitioning changed", "", *terms), at)
        if before.default_sort_order_id != after.default_sort_order_id:
            terms = _sort_order(before), _sort_order(after)
            yield SchemaChange(Change("sort order changed", "", *terms), at)


def _partitioning(metadata: "TableMetadata") -> str:
    """Format a partition spec as declared: `days(d), bucket(10, id)`; empty for none."""
    return ", ".join(map(str, parse_partition_fields([metadata.spec()], metadata.schema())))


def _sort_order(metadata: "TableMetadata") -> str:
    """Format a sort order as declared: `d desc nulls last, id asc nulls first`; empty for none."""
    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    return ", ".join(map(str, parse_sort_fields(order, metadata.schema()))) if order else ""


def _metadata_versions(table: "Table") -> "Iterator[TableMetadata]":
    """Yield the existing earlier metadata files, oldest first, and the current one."""
    from pyiceberg.serializers import FromInputFile

    for entry in table.metadata.metadata_log:
        file = table.io.new_input(entry.metadata_file)
        if file.exists():
            yield FromInputFile.table_metadata(file)
    yield table.metadata
