"""What a table is now, read from its metadata without a JVM, in the words of a declaration."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.table_size import Extent, read_extent
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.types import Array, ColumnType, Decimal, Field, Map, Primitive, Struct

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import IcebergType

# Where Spark reads an Iceberg type under another name.
_SPARK_NAMES = {
    "long": "bigint",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
}


@dataclass(frozen=True)
class ColumnState:
    """A column as the table has it."""

    name: str
    type: ColumnType
    doc: str = ""
    required: bool = False
    field_id: int = 0


@dataclass(frozen=True)
class TableState:
    """A table as its current metadata describes it."""

    name: str
    columns: tuple[ColumnState, ...]
    partitioning: tuple[PartitionField, ...]
    partition_names: Mapping[str, str]
    """Name of each field of the partition spec in Iceberg, and the column that it is made
    from.
    """
    past_partitioning: tuple[PartitionField, ...]
    """The fields of all specs that the metadata keeps, the current one included: old files
    still follow them.
    """
    sort_order: tuple[SortField, ...]
    properties: Mapping[str, str]
    location: str
    format_version: int
    schema_id: int
    snapshot_schema_id: int | None
    """Schema that the current snapshot of main was written with."""
    has_snapshot: bool
    """Whether main has a snapshot."""
    is_empty: bool
    """Whether nothing was ever written, not even to a branch."""
    extent: Extent | None = None
    """What the current snapshot holds; None where nobody asked, since that takes a look at all
    of its manifests.
    """

    @property
    def comment(self) -> str:
        """What the table says of itself."""
        return self.properties.get("comment", "")

    @property
    def schema_is_committed(self) -> bool:
        """Whether time travel to the current snapshot shows the current names."""
        return not self.has_snapshot or self.snapshot_schema_id == self.schema_id


def read_state(engine: Engine, table: str, *, with_extent: bool = False) -> TableState | None:
    """Read what a table is now: one read of its metadata file; None where the catalog has no
    such table.
    """
    try:
        loaded = engine.catalog.load(table)
    except TableNotFound:
        return None
    state = state_of(table, loaded)
    return replace(state, extent=read_extent(loaded)) if with_extent else state


def state_of(name: str, table: "Table") -> TableState:
    """Return the state of a table that PyIceberg has loaded."""
    metadata, schema, snapshot = table.metadata, table.schema(), table.current_snapshot()
    names = _column_names(schema)
    return TableState(
        name=name,
        columns=tuple(
            ColumnState(
                field.name,
                column_type(field.field_type),
                field.doc or "",
                field.required,
                field.field_id,
            )
            for field in schema.fields
        ),
        partitioning=_partition_fields([table.spec()], names),
        partition_names={
            field.name: names.get(field.source_id, "") for field in table.spec().fields
        },
        past_partitioning=_partition_fields(metadata.partition_specs, names),
        sort_order=_sort_fields(table.sort_order().fields, names),
        properties=dict(metadata.properties),
        location=metadata.location,
        format_version=metadata.format_version,
        schema_id=metadata.current_schema_id,
        snapshot_schema_id=snapshot.schema_id if snapshot else None,
        has_snapshot=snapshot is not None,
        is_empty=not metadata.snapshots,
    )


def names_at(table: "Table", snapshot_id: int, then_id: int) -> dict[str, str | None]:
    """Return by each column of a snapshot the name that another shows it by; None where that
    one does not have it.
    """
    now, then = schema_at(table, snapshot_id), _column_names(schema_at(table, then_id))
    return {field.name: then.get(field.field_id) for field in now.fields}


def schema_at(table: "Table", snapshot_id: int | None) -> "Schema":
    """Return the schema that time travel reads a snapshot with; the current one before there is
    any.
    """
    snapshot = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    # Spark too reads a snapshot that does not tell its schema with the current one.
    return (
        table.schema()
        if snapshot is None or snapshot.schema_id is None
        else table.schemas()[snapshot.schema_id]
    )


def column_type(found: "IcebergType") -> ColumnType:
    """Return an Iceberg type as Spark names it; one that has no name in a declaration keeps
    Iceberg's.
    """
    from pyiceberg.types import DecimalType, FixedType, ListType, MapType, StructType

    if isinstance(found, DecimalType):
        return Decimal(found.precision, found.scale)
    if isinstance(found, StructType):
        return Struct(
            tuple(Field(field.name, column_type(field.field_type)) for field in found.fields)
        )
    if isinstance(found, ListType):
        return Array(column_type(found.element_type))
    if isinstance(found, MapType):
        return Map(column_type(found.key_type), column_type(found.value_type))
    if isinstance(found, FixedType):
        return Primitive("binary")
    return Primitive(_SPARK_NAMES.get(str(found), str(found)))


def _column_names(schema: "Schema") -> dict[int, str]:
    from pyiceberg.schema import index_name_by_id

    return index_name_by_id(schema)


def _partition_fields(
    specs: Iterable[Any], names: Mapping[int, str]
) -> tuple[PartitionField, ...]:
    fields = (field for spec in specs for field in spec.fields)
    parsed = (_transformed(str(field.transform), field.source_id, names) for field in fields)
    return tuple(dict.fromkeys(field for field in parsed if field is not None))


def _sort_fields(fields: Iterable[Any], names: Mapping[int, str]) -> tuple[SortField, ...]:
    return tuple(
        SortField(term, field.direction.name == "DESC", field.null_order.name == "NULLS_FIRST")
        for field in fields
        if (term := _transformed(str(field.transform), field.source_id, names)) is not None
    )


def _transformed(
    transform: str, source_id: int, names: Mapping[int, str]
) -> PartitionField | None:
    # A field dropped from a v1 table stays as `void`; a source that is not in the schema was
    # dropped.
    return (
        PartitionField.of_metadata(transform, names[source_id]) if source_id in names else None
    )
