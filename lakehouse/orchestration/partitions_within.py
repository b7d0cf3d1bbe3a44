"""Partitions of an asset that can contain rows of its table."""

from collections.abc import Collection, Iterator

import dagster as dg

from lakehouse.iceberg.metadata.existing_partitions import ExistingSpans, Extent
from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.orchestration.partition_bounds import partitions_of
from lakehouse.tables.table import IcebergTable


def partitions_within(
    table: IcebergTable,
    definition: dg.PartitionsDefinition,
    extents: Collection[Extent] | None,
) -> Iterator[tuple[str, Partitions]]:
    """Yield the partitions that can contain rows with their keys, in order.

    :param extents: value ranges of the existing files; None if unknown (yields all).
    """
    by = table.overwritten_by or ""
    keys = definition.get_partition_keys()
    partitions = partitions_of(definition, keys, column=by, column_type=table.column(by).type)
    if not partitions.ranges:
        for key in keys:
            if extents is None or (key, key) in extents:
                yield key, Partitions((key,))
        return
    like = partitions.ranges[0][0]
    there = None if extents is None else ExistingSpans(extents, like)
    for key, span in zip(keys, partitions.ranges, strict=True):
        if there is None or there.share(span):
            yield key, Partitions((key,), (span,))
