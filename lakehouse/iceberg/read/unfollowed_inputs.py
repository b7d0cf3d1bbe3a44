"""Inputs of a partitioned table whose changes make no partition stale.

An input without `by=`, such as a table of shops joined with orders, cannot be assigned to
partitions. Recomputing all partitions after each change would usually cost too much, and
history is often meant to keep the former values. They are recomputed only on request.
"""

from collections.abc import Mapping

from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.tables.table import IcebergTable


def unfollowed(table: IcebergTable, inputs: Mapping[str, Input]) -> tuple[str, ...]:
    """Return the tables whose changes make no partition stale, sorted; empty without
    partitions.

    `as_of` inputs are left out, since a past state does not change.
    """
    if table.overwritten_by is None:
        return ()
    read = {declared.table for declared in inputs.values() if declared.mode != "as_of"}
    return tuple(sorted(read - followed(table, inputs).keys() - {table.name}))
