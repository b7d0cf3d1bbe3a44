"""Partition values and row counts of a table or a commit, from manifests: no JVM, no data scan."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.metadata.manifests import (
    has_live_files,
    own_manifests,
    partition_values,
    read_files,
    read_manifests,
)
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.values.value_ranges import Bound, ValueRange, joined, value_range_of
from lakehouse.iceberg.values.write_context import Partitions

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.table import Table


_EXACT_TRANSFORMS = ("identity", "day")


def changed_values(
    table: "Table", history: History, since: int | None, until: int, column: str
) -> set[Any]:
    """Return the partition values of files that were added or removed after `since`, up to
    `until`.

    All values if `since` is no ancestor. None represents rows without a value. Compaction and
    erasure are skipped: each table is erased separately.

    :raises DeclarationError: if some files have a partition spec without the column.
    """
    between = history.kept_between(since, until)
    if between is None:
        return set(_values(table, read_manifests(table, until), column))
    values: set[Any] = set()
    for snapshot in between:
        if snapshot.operation != "replace" and not snapshot.is_erasure:
            values |= values_changed_by(table, snapshot.snapshot_id, column)
    return values


def values_changed_by(table: "Table", snapshot_id: int, column: str) -> set[Any]:
    """Return the partition values of files that one commit added or removed.

    :raises DeclarationError: if some files have a partition spec without the column.
    """
    written = own_manifests(table, snapshot_id)
    return set(_values(table, written, column, by_commit=True))


def _values(
    table: "Table", manifests: "Iterable[ManifestFile]", column: str, *, by_commit: bool = False
) -> Iterator[Any]:
    """Yield the column's value of each live file, or of each file that the commit changed."""
    from pyiceberg.manifest import ManifestEntryStatus

    for manifest in manifests:
        if not (by_commit or has_live_files(manifest)):
            continue
        spec = table.specs()[manifest.partition_spec_id]
        field = partition_field_of(table, spec, column)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=not by_commit):
            if not (by_commit and entry.status == ManifestEntryStatus.EXISTING):
                yield partition_values(table, spec, entry)[field.field_id]


def partition_field_of(table: "Table", spec: "PartitionSpec", column: str) -> "PartitionField":
    """Return the partition field of a spec that determines a column's value.

    :raises DeclarationError: if the spec has none.
    """
    field = partition_fields(table, column).get(spec.spec_id)
    if field is None:
        raise DeclarationError(
            f"{'.'.join(table.name())} is read by partitions of {column}, and has files of a"
            f" partition spec without it: {spec}.",
            next_step=(
                f"Partition it by {column} or days({column}), and rewrite the older files."
            ),
        )
    return field


def is_timestamp_column(table: "Table", column: str) -> bool:
    """Whether a column is a timestamp; partitioned by day, its values are days."""
    return str(table.schema().find_type(column)) in ("timestamp", "timestamptz")


def partition_fields(
    table: "Table", column: str, transforms: Collection[str] = _EXACT_TRANSFORMS
) -> "dict[int, PartitionField]":
    """Return the partition field that determines a column's value, by spec id."""
    source_id = table.schema().find_field(column).field_id
    fields = {}
    for spec_id, spec in table.specs().items():
        for field in spec.fields:
            if field.source_id == source_id and str(field.transform) in transforms:
                fields[spec_id] = field
    return fields


Extent = tuple[Any, Any]
"""The first and last value of a column that a file's rows can have."""


def existing_extents(table: "Table", column: str) -> set[Extent] | None:
    """Return the value extents of the current files; None if a spec does not determine them."""
    specs, fields = table.specs(), partition_fields(table, column, EXTENT_BY_TRANSFORM)
    extents: set[Extent] = set()
    for manifest in read_manifests(table):
        field_of_spec = fields.get(manifest.partition_spec_id)
        if field_of_spec is None:
            return None
        spec = specs[manifest.partition_spec_id]
        for entry in manifest.fetch_manifest_entry(table.io):
            value = partition_values(table, spec, entry)[field_of_spec.field_id]
            if value is not None:
                extents.add(EXTENT_BY_TRANSFORM[str(field_of_spec.transform)](value))
    return extents


class ExistingSpans:
    """The ranges of a column that can contain rows, from value extents."""

    def __init__(self, extents: Iterable[Extent], like: Bound) -> None:
        """Merge adjacent ranges, in the type of `like`; a day can represent its timestamps."""
        ranges = [
            (value_range_of(first, like)[0], value_range_of(last, like)[1])
            for first, last in extents
        ]
        # All bounds of one column have the same type.
        merged: list[tuple[Any, Any]] = [*joined(ranges)]
        self._starts = [start for start, _ in merged]
        self._ends = [end for _, end in merged]

    def share(self, span: ValueRange) -> bool:
        """Whether they overlap a range."""
        low, high = span
        first = bisect_right(self._ends, low)
        return first < len(self._starts) and bool(self._starts[first] < high)


def _month(months: int) -> Extent:
    """Return the first and last day of a month, by its number since 1970."""
    return _first_day(months), _first_day(months + 1) - timedelta(days=1)


def _first_day(months: int) -> date:
    year = min(1970 + months // 12, date.max.year)
    return date(year, months % 12 + 1, 1)


def _hour(hours: int) -> Extent:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    return start, start + timedelta(hours=1, microseconds=-1)


def _value(value: Any) -> Extent:
    return value, value


EXTENT_BY_TRANSFORM = {"identity": _value, "day": _value, "month": _month, "hour": _hour}


def rows_by_value(table: "Table", snapshot_id: int, column: str) -> Counter[Any]:
    """Return the rows in data files by value of a partition column, if their spec has it."""
    fields = partition_fields(table, column)
    rows: Counter[Any] = Counter()
    for file in read_files(table, snapshot_id):
        field = fields.get(file.spec_id)
        if field is not None and file.content == "data":
            rows[file.partition[field.name]] += file.record_count
    return rows


def added_rows(
    table: "Table", snapshot_id: int, column: str, partitions: Partitions
) -> dict[str, int] | None:
    """Return the rows that a commit added to each partition, by name; None if unknown."""
    return _rows(table, own_manifests(table, snapshot_id), column, partitions, is_added=True)


def present_rows(
    table: "Table", snapshot_id: int, column: str, partitions: Partitions
) -> dict[str, int] | None:
    """Return the rows of each partition in a snapshot, by name; None with delete files."""
    from pyiceberg.manifest import ManifestContent

    manifests = read_manifests(table, snapshot_id)
    if any(manifest.content == ManifestContent.DELETES for manifest in manifests):
        return None
    return _rows(table, manifests, column, partitions, is_added=False)


def _rows(
    table: "Table",
    manifests: "Iterable[ManifestFile]",
    column: str,
    partitions: Partitions,
    *,
    is_added: bool,
) -> dict[str, int] | None:
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus

    fields, specs = partition_fields(table, column), table.specs()
    ranges: list[tuple[Any, Any, str]] = []
    if partitions.ranges:
        named = zip(partitions.ranges, partitions.values, strict=True)
        ranges = sorted((low, high, name) for (low, high), name in named)
    rows = dict.fromkeys(partitions.values, 0)
    for manifest in manifests:
        field = fields.get(manifest.partition_spec_id)
        for entry in manifest.fetch_manifest_entry(table.io):
            is_other = is_added and entry.status != ManifestEntryStatus.ADDED
            if is_other or entry.data_file.content != DataFileContent.DATA:
                continue
            if field is None:
                return None
            values = partition_values(table, specs[manifest.partition_spec_id], entry)
            name = _partition_name(values[field.field_id], ranges)
            if name is None:
                return None
            if name in rows:
                rows[name] += entry.data_file.record_count
    return rows


def _partition_name(value: Any, ranges: list[tuple[Any, Any, str]]) -> str | None:
    """Return the partition that contains a value; empty for none, None for a part of one."""
    if value is None:
        return ""
    if not ranges:
        return str(value)
    bounds: tuple[Any, Any] = value_range_of(value, ranges[0][0])
    begin, end = bounds
    at = bisect_right(ranges, begin, key=lambda span: span[0]) - 1
    following = ranges[at + 1][0] if at + 1 < len(ranges) else end
    if at < 0 or ranges[at][1] <= begin:
        return "" if following >= end else None
    return ranges[at][2] if end <= ranges[at][1] else None
