"""Which days or values of a column a table's commits touched, told by its manifests: no JVM, no
scan of data.
"""

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

_TELLING = ("identity", "day")


def changed_values(
    table: "Table", history: History, since: int | None, until: int, column: str
) -> set[Any]:
    """Return the values of a partition column in the files that came or went after `since`, up
    to `until`.

    All values that the table has as of `until` where `since` is None, or is no longer an
    ancestor of it. None is among them where a file holds rows without a value. Compaction
    changes files and no rows, and is passed over; so is an erasure, which each table that has
    rows of theirs goes through by itself.

    :raises DeclarationError: when some of these files were written under a partition spec that
        does not tell.
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
    """Return the values of a partition column in the files that came or went by one commit.

    :raises DeclarationError: when some of these files were written under a partition spec that
        does not tell.
    """
    written = own_manifests(table, snapshot_id)
    return set(_values(table, written, column, by_commit=True))


def _values(
    table: "Table", manifests: "Iterable[ManifestFile]", column: str, *, by_commit: bool = False
) -> Iterator[Any]:
    """Yield the column's value of each file that is live, or of those that came or went by the
    manifest's commit.
    """
    from pyiceberg.manifest import ManifestEntryStatus

    for manifest in manifests:
        if not (by_commit or has_live_files(manifest)):
            continue
        spec = table.specs()[manifest.partition_spec_id]
        field = telling_field(table, spec, column)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=not by_commit):
            if not (by_commit and entry.status == ManifestEntryStatus.EXISTING):
                yield partition_values(table, spec, entry)[field.field_id]


def telling_field(table: "Table", spec: "PartitionSpec", column: str) -> "PartitionField":
    """Return the field of a partition spec that tells a column's value.

    :raises DeclarationError: when it has none.
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


def is_moments(table: "Table", column: str) -> bool:
    """Whether a column is one of moments, with a zone or without, of which days are told where it
    is partitioned by days.
    """
    return str(table.schema().find_type(column)) in ("timestamp", "timestamptz")


def partition_fields(
    table: "Table", column: str, telling: Collection[str] = _TELLING
) -> "dict[int, PartitionField]":
    """Return, by spec id, the partition field that tells a column's value; specs without one
    are left out.

    :param telling: the transforms that tell enough.
    """
    source_id = table.schema().find_field(column).field_id
    fields = {}
    for spec_id, spec in table.specs().items():
        for field in spec.fields:
            if field.source_id == source_id and str(field.transform) in telling:
                fields[spec_id] = field
    return fields
