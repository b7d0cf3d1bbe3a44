"""Which days or values of a column a table's commits touched, told by its manifests: no JVM, no scan of data."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.history import History
from lakehouse.iceberg.inspecting.manifest_entries import partition_values

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

_TELLING = ("identity", "day")


def changed_values(table: "Table", history: History, since: int | None, until: int, column: str) -> set[Any]:
    """Return the values of a partition column in the files that came or went after `since`, up to `until`.

    All values that the table has as of `until` where `since` is None, or is no longer an ancestor of it. None is among
    them where a file holds rows without a value. Compaction changes files and no rows, and is passed over.

    :raises DeclarationError: when some of these files were written under a partition spec that does not tell.
    """
    between = history.between(since, until) if since is not None and since in history.snapshots else None
    if between is None:
        return {value for manifest in _manifests(table, until) for value in _live(table, manifest, column)}
    changing = [snapshot.snapshot_id for snapshot in between if snapshot.operation != "replace"]
    return {value for snapshot_id in changing for value in _changed(table, snapshot_id, column)}


def _changed(table: "Table", snapshot_id: int, column: str) -> Iterator[Any]:
    from pyiceberg.manifest import ManifestEntryStatus

    for manifest in _manifests(table, snapshot_id):
        if manifest.added_snapshot_id == snapshot_id:
            field_id = _field_id(table, manifest, column)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                if entry.status != ManifestEntryStatus.EXISTING:
                    yield partition_values(table, table.specs()[manifest.partition_spec_id], entry)[field_id]


def _live(table: "Table", manifest: "ManifestFile", column: str) -> Iterator[Any]:
    field_id = _field_id(table, manifest, column)
    for entry in manifest.fetch_manifest_entry(table.io):
        yield partition_values(table, table.specs()[manifest.partition_spec_id], entry)[field_id]


def _manifests(table: "Table", snapshot_id: int) -> "list[ManifestFile]":
    snapshot = table.snapshot_by_id(snapshot_id)
    return snapshot.manifests(table.io) if snapshot else []


def partition_field_names(table: "Table", column: str) -> dict[int, str]:
    """Return, by spec id, the name of the partition field that tells a column's value; specs without one left out."""
    source_id = table.schema().find_field(column).field_id
    return {
        spec_id: field.name
        for spec_id, spec in table.specs().items()
        for field in spec.fields
        if field.source_id == source_id and str(field.transform) in _TELLING
    }


def _field_id(table: "Table", manifest: "ManifestFile", column: str) -> int:
    """Return the partition field that tells the column's value, in the spec that a manifest was written under."""
    spec = table.specs()[manifest.partition_spec_id]
    source_id = table.schema().find_field(column).field_id
    for field in spec.fields:
        if field.source_id == source_id and str(field.transform) in _TELLING:
            return field.field_id
    raise DeclarationError(
        f"{'.'.join(table.name())} is read by partitions of {column}, and has files of a partition spec without it: "
        f"{spec}.",
        next_step=f"Partition it by {column} or days({column}), and rewrite the older files.",
    )
