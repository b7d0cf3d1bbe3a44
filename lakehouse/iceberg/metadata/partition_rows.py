"""How many rows each partition of a run got by its commit, told by the files that it added."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.manifests import own_manifests, partition_values, readable
from lakehouse.iceberg.metadata.write_context import Partitions

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField


def added_rows(
    table: "Table", snapshot_id: int, column: str, partitions: Partitions
) -> dict[str, int] | None:
    """Return the rows that a commit added to each of some partitions, by their names; None where
    its files do not tell.

    A file tells by the value of its partition, or by the least and the greatest value of the
    column in it, where both lie in one partition. No row is read.
    """
    source = table.schema().find_field(column)
    ranges = _in_order(partitions)
    rows = dict.fromkeys(partitions.values, 0)
    for entry, spec in _added_files(table, snapshot_id):
        values = _values_in(table, spec, entry, source)
        name = _name_of(values, ranges) if ranges and values else _text(values)
        if name not in rows:
            return None
        rows[name] += entry.data_file.record_count
    return rows


def _in_order(partitions: Partitions) -> list[tuple[Any, Any, str]]:
    if not partitions.ranges:
        return []
    named = zip(partitions.ranges, partitions.values, strict=True)
    return sorted((low, high, name) for (low, high), name in named)


def _name_of(values: tuple[Any, Any], ranges: list[tuple[Any, Any, str]]) -> str:
    """Return the name of the partition that two values lie in; nothing where there is none."""
    least, greatest = values
    at = bisect_right(ranges, least, key=lambda span: span[0]) - 1
    _, high, name = ranges[at]
    return name if at >= 0 and greatest < high else ""


def _text(values: tuple[Any, Any] | None) -> str:
    """Return the one value of a file as text; nothing where it has several."""
    return str(values[0]) if values and values[0] == values[1] else ""


def _added_files(
    table: "Table", snapshot_id: int
) -> "Iterator[tuple[ManifestEntry, PartitionSpec]]":
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus

    for manifest in own_manifests(table, snapshot_id):
        spec = table.specs()[manifest.partition_spec_id]
        for entry in manifest.fetch_manifest_entry(table.io):
            is_data = entry.data_file.content == DataFileContent.DATA
            if entry.status == ManifestEntryStatus.ADDED and is_data:
                yield entry, spec


def _values_in(
    table: "Table", spec: "PartitionSpec", entry: "ManifestEntry", source: "NestedField"
) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a column in a file; None where they are not
    known.
    """
    for field in spec.fields:
        if field.source_id == source.field_id and str(field.transform) == "identity":
            value = _aware(partition_values(table, spec, entry)[field.field_id])
            return None if value is None else (value, value)
    if str(source.field_type) == "string":
        # Its bounds may be cut short.
        return None
    return _bounds(entry.data_file, source)


def _bounds(file: "DataFile", source: "NestedField") -> tuple[Any, Any] | None:
    from pyiceberg.conversions import from_bytes

    number, kind = source.field_id, source.field_type
    lower = (file.lower_bounds or {}).get(number)
    upper = (file.upper_bounds or {}).get(number)
    if lower is None or upper is None or (file.null_value_counts or {}).get(number):
        return None
    value_of: Any = from_bytes
    least, greatest = (readable(value_of(kind, bound), str(kind)) for bound in (lower, upper))
    return _aware(least), _aware(greatest)


def _aware(value: Any) -> Any:
    """Return a moment as bounds of partitions have it: one without a zone is of UTC."""
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if is_naive else value
