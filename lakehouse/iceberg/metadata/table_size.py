"""Rows, bytes, partitions and value bounds of a table, from its manifests; no JVM."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.iceberg.metadata.manifests import partition_values, read_manifests
from lakehouse.tables.partitioning import PartitionField

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import Table

_BYTE_ORDERS: dict[str, Literal["little", "big"]] = {
    **dict.fromkeys(("int", "long", "date", "timestamp", "timestamptz"), "little"),
    "decimal": "big",
}
Partition = frozenset[tuple[PartitionField, Any]]
"""A value for each partition field."""


@dataclass(frozen=True)
class TableSize:
    """Size and value bounds of a snapshot."""

    rows: int
    size_bytes: int
    partitions: frozenset[Partition]
    """Partitions with files, by the fields of their files' spec."""
    bounds: Mapping[str, tuple[int, int]]
    """Lowest and highest value of each numeric column with bounds in all files.

    Dates are days since 1970, timestamps microseconds, and decimals unscaled integers.
    """


def read_table_size(table: "Table") -> TableSize:
    """Read the size of a table's current snapshot; opens each of its manifests once."""
    files = []
    partitions = set()
    for file, partition in _data_files(table):
        files.append(file)
        partitions.add(partition)
    bounds = {}
    for field in table.schema().fields:
        column_bounds = _bounds(files, field.field_id, str(field.field_type))
        if column_bounds is not None:
            bounds[field.name] = column_bounds
    return TableSize(
        rows=sum(file.record_count for file in files),
        size_bytes=sum(file.file_size_in_bytes for file in files),
        partitions=frozenset(partitions),
        bounds=bounds,
    )


def _data_files(table: "Table") -> "Iterator[tuple[DataFile, Partition]]":
    specs = table.specs()
    for manifest in read_manifests(table):
        # Delete files are in separate manifests.
        if manifest.content != 0:
            continue
        spec = specs[manifest.partition_spec_id]
        fields = _fields(table, spec)
        for entry in manifest.fetch_manifest_entry(table.io):
            values = partition_values(table, spec, entry)
            partition = ((field, values[field_id]) for field_id, field in fields.items())
            yield entry.data_file, frozenset(partition)


def _fields(table: "Table", spec: "PartitionSpec") -> dict[int, PartitionField]:
    names = {field.field_id: field.name for field in table.schema().fields}
    fields = {}
    for field in spec.fields:
        if field.source_id not in names:
            continue
        term = PartitionField.of_metadata(str(field.transform), names[field.source_id])
        if term is not None:
            fields[field.field_id] = term
    return fields


def _bounds(files: "list[DataFile]", field_id: int, column_type: str) -> tuple[int, int] | None:
    """Return the bounds of a column; None if it is not numeric, or a file with values has none."""
    byte_order = _BYTE_ORDERS.get(column_type.split("(")[0])
    if byte_order is None:
        return None
    lows, highs = [], []
    for file in files:
        if (file.null_value_counts or {}).get(field_id) == file.record_count:
            continue
        low = (file.lower_bounds or {}).get(field_id)
        high = (file.upper_bounds or {}).get(field_id)
        if low is None or high is None:
            return None
        # Files from before a type promotion have shorter bounds.
        lows.append(int.from_bytes(low, byte_order, signed=True))
        highs.append(int.from_bytes(high, byte_order, signed=True))
    return (min(lows), max(highs)) if lows else None
