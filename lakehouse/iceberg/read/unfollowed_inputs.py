"""Inputs of a partitioned table whose changes make no partition stale.

An input without `by=`, such as a table of shops, cannot be assigned to partitions, and
recomputing all would usually cost too much.
"""

from collections.abc import Mapping

from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.tables.table import IcebergTable


def unfollowed(table: IcebergTable, inputs: Mapping[str, Input]) -> tuple[str, ...]:
    """Return the tables whose changes make no partition stale, sorted; no `as_of` inputs."""
    if table.overwritten_by is None:
        return ()
    read = {declared.table for declared in inputs.values() if declared.mode != "as_of"}
    return tuple(sorted(read - followed(table, inputs).keys() - {table.name}))
