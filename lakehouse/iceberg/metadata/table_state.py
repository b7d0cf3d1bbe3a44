"""The current state of a table in terms of a declaration, read from its metadata without a JVM."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.type_conversion import column_type
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.types import ColumnType

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionField as IcebergPartitionField
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.sorting import SortField as IcebergSortField
    from pyiceberg.table.sorting import SortOrder


@dataclass(frozen=True)
class ColumnState:
    """A column of the table."""

    name: str
    type: ColumnType
    doc: str = ""
    required: bool = False


@dataclass(frozen=True)
class TableState:
    """A table as its current metadata describes it."""

    name: str
    columns: tuple[ColumnState, ...]
    partitioning: tuple[PartitionField, ...]
    partition_names: Mapping[str, str]
    """The source column of each partition field, by the field's Iceberg name."""
    past_partitioning: tuple[PartitionField, ...]
    """The fields of all partition specs; old files still use the former ones."""
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
    """Whether no snapshot has rows, not even on a branch."""
    main_bytes: int = 0
    """Bytes of the data and delete files of main, from its summary."""
    main_deleted_rows: int = 0
    """Rows of main that delete files delete, from its summary."""

    @property
    def comment(self) -> str:
        """The comment of the table."""
        return self.properties.get("comment", "")

    @property
    def schema_is_committed(self) -> bool:
        """Whether time travel to the current snapshot shows the current names."""
        return not self.has_snapshot or self.snapshot_schema_id == self.schema_id


def read_state(engine: Engine, table: str) -> TableState | None:
    """Read a table's current state from its metadata file; None if the table does not exist."""
    try:
        loaded = engine.catalog.load(table)
    except TableNotFound:
        return None
    return state_of(table, loaded)


def state_of(name: str, table: "Table") -> TableState:
    """Return the state of a table that PyIceberg has loaded."""
    metadata, schema, snapshot = table.metadata, table.schema(), table.current_snapshot()
    spec = table.spec()
    return TableState(
        name=name,
        columns=tuple(
            ColumnState(
                field.name, column_type(field.field_type), field.doc or "", field.required
            )
            for field in schema.fields
        ),
        partitioning=parse_partition_fields([spec], schema),
        partition_names={
            field.name: schema.find_column_name(field.source_id) or "" for field in spec.fields
        },
        past_partitioning=parse_partition_fields(metadata.partition_specs, schema),
        sort_order=parse_sort_fields(table.sort_order(), schema),
        properties=dict(metadata.properties),
        location=metadata.location,
        format_version=metadata.format_version,
        schema_id=metadata.current_schema_id,
        snapshot_schema_id=snapshot.schema_id if snapshot else None,
        has_snapshot=snapshot is not None,
        is_empty=not any(_total(kept, "total-records", 1) for kept in metadata.snapshots),
        main_bytes=_total(snapshot, "total-files-size"),
        main_deleted_rows=_total(snapshot, "total-position-deletes"),
    )


def _total(snapshot: "Snapshot | None", key: str, default: int = 0) -> int:
    if snapshot is None or snapshot.summary is None:
        return default
    return int(snapshot.summary.additional_properties.get(key, default))


def names_at(table: "Table", snapshot_id: int, then_id: int) -> dict[str, str | None]:
    """Return, for each column of a snapshot, its name in another one; None if missing."""
    then_schema = schema_at(table, then_id)
    fields = schema_at(table, snapshot_id).fields
    return {field.name: then_schema.find_column_name(field.field_id) for field in fields}


def schema_at(table: "Table", snapshot_id: int | None) -> "Schema":
    """Return the schema for time travel to a snapshot; the current one if there is no snapshot."""
    snapshot = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    # Spark also uses the current schema if a snapshot has no schema id.
    return (
        table.schema()
        if snapshot is None or snapshot.schema_id is None
        else table.schemas()[snapshot.schema_id]
    )


def parse_partition_fields(
    specs: "Iterable[PartitionSpec]", schema: "Schema"
) -> tuple[PartitionField, ...]:
    """Return the fields of some partition specs as declared terms, each once."""
    terms = (_parse_term(field, schema) for spec in specs for field in spec.fields)
    return tuple(dict.fromkeys(term for term in terms if term is not None))


def parse_sort_fields(order: "SortOrder", schema: "Schema") -> tuple[SortField, ...]:
    """Return the fields of a sort order as declared terms."""
    terms = ((field, _parse_term(field, schema)) for field in order.fields)
    return tuple(
        SortField(term, field.direction.name == "DESC", field.null_order.name == "NULLS_FIRST")
        for field, term in terms
        if term is not None
    )


def _parse_term(
    field: "IcebergPartitionField | IcebergSortField", schema: "Schema"
) -> PartitionField | None:
    # A field dropped from a v1 table remains as `void`; a source column missing from the schema
    # was dropped.
    column = schema.find_column_name(field.source_id)
    return PartitionField.of_metadata(str(field.transform), column) if column else None
