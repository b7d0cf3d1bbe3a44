"""How much a table holds, and how far its values reach, told by its manifests: no JVM, no scan
of data.
"""

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
class Extent:
    """What a snapshot holds."""

    rows: int
    size_bytes: int
    partitions: frozenset[Partition]
    """The partitions that have files, each in the fields of its files' spec."""
    bounds: Mapping[str, tuple[int, int]]
    """The lowest and the highest value of each column of whole numbers that all files tell them
    of: dates are days since 1970, moments are microseconds, and decimals are taken without
    their point.
    """


def read_extent(table: "Table") -> Extent:
    """Read what the current snapshot of a table holds: one look at each of its manifests."""
    found = list(_data_files(table))
    files = [file for file, _ in found]
    ranges = {
        field.name: _bounds(files, field.field_id, str(field.field_type))
        for field in table.schema().fields
    }
    return Extent(
        rows=sum(file.record_count for file in files),
        size_bytes=sum(file.file_size_in_bytes for file in files),
        partitions=frozenset(partition for _, partition in found),
        bounds={name: reach for name, reach in ranges.items() if reach is not None},
    )


def _data_files(table: "Table") -> "Iterator[tuple[DataFile, Partition]]":
    specs = table.specs()
    for manifest in read_manifests(table):
        # Files of deletes stand in manifests of their own.
        if manifest.content == 0:
            fields = _fields(table, specs[manifest.partition_spec_id])
            for entry in manifest.fetch_manifest_entry(table.io):
                values = partition_values(table, specs[manifest.partition_spec_id], entry)
                yield (
                    entry.data_file,
                    frozenset((field, values[field_id]) for field_id, field in fields.items()),
                )


def _fields(table: "Table", spec: "PartitionSpec") -> dict[int, PartitionField]:
    names = {field.field_id: field.name for field in table.schema().fields}
    parsed = {
        field.field_id: PartitionField.of_metadata(str(field.transform), names[field.source_id])
        for field in spec.fields
        if field.source_id in names
    }
    return {field_id: field for field_id, field in parsed.items() if field is not None}


def _bounds(files: "list[DataFile]", field_id: int, column_type: str) -> tuple[int, int] | None:
    kind = column_type.split("(")[0]
    if kind not in _BYTE_ORDERS:
        return None
    filled = [
        file
        for file in files
        if (file.null_value_counts or {}).get(field_id) != file.record_count
    ]
    lower = [
        low for file in filled if (low := (file.lower_bounds or {}).get(field_id)) is not None
    ]
    upper = [
        high for file in filled if (high := (file.upper_bounds or {}).get(field_id)) is not None
    ]
    if not filled or len(lower) < len(filled) or len(upper) < len(filled):
        return None
    # A file written before its column was widened has the bounds in fewer bytes.
    lows, highs = (
        [int.from_bytes(end, _BYTE_ORDERS[kind], signed=True) for end in ends]
        for ends in (lower, upper)
    )
    return min(lows), max(highs)
