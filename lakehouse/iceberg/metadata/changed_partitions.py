"""Partition values that a table's commits changed, from its manifests: no JVM, no data scan."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.metadata.manifests import (
    has_live_files,
    own_manifests,
    partition_values,
    read_manifests,
)

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
    """Return, by spec id, the partition field that determines a column's value, if there is
    one.
    """
    source_id = table.schema().find_field(column).field_id
    fields = {}
    for spec_id, spec in table.specs().items():
        for field in spec.fields:
            if field.source_id == source_id and str(field.transform) in transforms:
                fields[spec_id] = field
    return fields
