"""Row counts of partitions, of a snapshot or a commit, from the partition values of its files."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.all_partitions import value_range_of
from lakehouse.iceberg.metadata.changed_partitions import partition_fields
from lakehouse.iceberg.metadata.manifests import (
    own_manifests,
    partition_values,
    read_manifests,
)
from lakehouse.iceberg.metadata.write_context import Partitions

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table


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
