"""What a table is computed from partition by partition, and that makes none of them stale.

An input without `by=`, such as a table of shops beside one of orders, does not tell which
partitions its rows belong to. To compute all of them whenever one shop changes would cost more
than most want, and history is often meant to keep what held then: so none is, until a person
asks.
"""

from collections.abc import Mapping

from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.tables.table import IcebergTable


def unfollowed(table: IcebergTable, inputs: Mapping[str, Input]) -> tuple[str, ...]:
    """Return the tables whose changes make no partition stale, sorted; none of a table without
    partitions.

    A past state does not change.
    """
    if table.overwritten_by is None:
        return ()
    read = {declared.table for declared in inputs.values() if declared.mode != "as_of"}
    return tuple(sorted(read - followed(table, inputs).keys() - {table.name}))
