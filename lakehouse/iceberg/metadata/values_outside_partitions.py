"""Rows of a table that are in no partition of a downstream asset, from its manifests."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.all_partitions import AllPartitions
from lakehouse.iceberg.metadata.changed_partitions import partition_field_of
from lakehouse.iceberg.metadata.manifests import (
    has_live_files,
    partition_values,
    read_manifests,
    readable,
)

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.partitioning import PartitionField
    from pyiceberg.table import Table


def outside_values(
    table: "Table", snapshot_id: int, column: str, every: AllPartitions
) -> Counter[Any]:
    """Return the values of a partition column outside of all partitions, with the rows of their
    files.

    None represents rows without a value. A day is included if only some of its timestamps are
    in a partition.

    :raises DeclarationError: if some files have a partition spec without the column.
    """
    from pyiceberg.manifest import ManifestContent

    rows: Counter[Any] = Counter()
    for manifest in read_manifests(table, snapshot_id):
        if not has_live_files(manifest):
            continue
        spec = table.specs()[manifest.partition_spec_id]
        field = partition_field_of(table, spec, column)
        if manifest.content == ManifestContent.DELETES or _is_within(
            table, manifest, field, every
        ):
            continue
        for entry in manifest.fetch_manifest_entry(table.io):
            value = partition_values(table, spec, entry)[field.field_id]
            if not every.has_all_of(value):
                rows[value] += entry.data_file.record_count
    return rows


def _is_within(
    table: "Table", manifest: "ManifestFile", field: "PartitionField", every: AllPartitions
) -> bool:
    """Whether all files of a manifest are in partitions, by its bounds."""
    from pyiceberg.conversions import from_bytes

    spec = table.specs()[manifest.partition_spec_id]
    if not manifest.partitions:
        return False
    summary = manifest.partitions[spec.fields.index(field)]
    lower, upper = summary.lower_bound, summary.upper_bound
    if summary.contains_null or lower is None or upper is None:
        return False
    result_type: Any = field.transform.result_type(table.schema().find_type(field.source_id))
    low = readable(from_bytes(result_type, lower), str(result_type))
    high = readable(from_bytes(result_type, upper), str(result_type))
    return every.has_between(low, high)
