"""Row counts of partitions, of a snapshot or a commit, from the table's files."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.manifests import own_manifests, read_manifests, readable
from lakehouse.iceberg.metadata.write_context import Partitions

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField


def added_rows(
    table: "Table", snapshot_id: int, column: str, partitions: Partitions
) -> dict[str, int] | None:
    """Return the rows that a commit added to each partition, by name; None if unknown.

    A file is assigned by its partition value, or by its column bounds if both are in one
    partition. No row is read.
    """
    own = own_manifests(table, snapshot_id)
    return _rows(table, _added_files(table, own), column, partitions)


def present_rows(
    table: "Table", snapshot_id: int, column: str, partitions: Partitions
) -> dict[str, int] | None:
    """Return the rows of a snapshot in each partition, by name; None if unknown or if the
    snapshot has delete files.
    """
    from pyiceberg.manifest import ManifestContent

    manifests = read_manifests(table, snapshot_id)
    if any(manifest.content == ManifestContent.DELETES for manifest in manifests):
        return None
    return _rows(table, _live_files(table, manifests), column, partitions)


def _rows(
    table: "Table",
    files: "Iterable[tuple[DataFile, PartitionSpec]]",
    column: str,
    partitions: Partitions,
) -> dict[str, int] | None:
    source = table.schema().find_field(column)
    ranges = _in_order(partitions)
    rows = dict.fromkeys(partitions.values, 0)
    for file, spec in files:
        values = _values_in(spec, file, source)
        if values is None:
            return None
        name = _name_of(values, ranges) if ranges else _text(values)
        if name is None:
            return None
        if name in rows:
            rows[name] += file.record_count
    return rows


def _in_order(partitions: Partitions) -> list[tuple[Any, Any, str]]:
    if not partitions.ranges:
        return []
    named = zip(partitions.ranges, partitions.values, strict=True)
    return sorted((low, high, name) for (low, high), name in named)


def _name_of(values: tuple[Any, Any], ranges: list[tuple[Any, Any, str]]) -> str | None:
    """Return the name of the partition that contains all values of a range.

    Empty if no partition overlaps the range; None if some do.
    """
    least, greatest = values
    if least is None:
        return ""
    at = bisect_right(ranges, greatest, key=lambda span: span[0]) - 1
    if at < 0 or ranges[at][1] <= least:
        return ""
    low, high, name = ranges[at]
    return name if low <= least and greatest < high else None


def _text(values: tuple[Any, Any]) -> str | None:
    """Return a file's only value as text, empty for NULL; None if it has several."""
    if values[0] != values[1]:
        return None
    return "" if values[0] is None else str(values[0])


def _added_files(
    table: "Table", manifests: "Iterable[ManifestFile]"
) -> "Iterator[tuple[DataFile, PartitionSpec]]":
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus

    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io):
            is_data = entry.data_file.content == DataFileContent.DATA
            if entry.status == ManifestEntryStatus.ADDED and is_data:
                yield entry.data_file, table.specs()[manifest.partition_spec_id]


def _live_files(
    table: "Table", manifests: "Iterable[ManifestFile]"
) -> "Iterator[tuple[DataFile, PartitionSpec]]":
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.data_file, table.specs()[manifest.partition_spec_id]


def _values_in(
    spec: "PartitionSpec", file: "DataFile", source: "NestedField"
) -> tuple[Any, Any] | None:
    """Return the least and greatest value of a column in a file; None if unknown."""
    for position, field in enumerate(spec.fields):
        if field.source_id == source.field_id and str(field.transform) == "identity":
            value = _aware(readable(file.partition[position], str(source.field_type)))
            return value, value
    if str(source.field_type) == "string":
        # String bounds can be truncated.
        return None
    return _bounds(file, source)


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
    """Return a timestamp as in partition bounds: without a zone it is UTC."""
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if is_naive else value
