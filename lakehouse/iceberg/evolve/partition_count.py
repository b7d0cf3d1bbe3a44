"""Number of partitions of a table, actual or under another spec, from file metadata."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.iceberg.metadata.table_size import TableSize
from lakehouse.tables.partitioning import PartitionField

_DAY_US = 24 * 60 * 60 * 1_000_000
_UNIT_DAYS = {"hours": 1 / 24, "days": 1.0, "months": 365.25 / 12, "years": 365.25}


@dataclass(frozen=True)
class PartitionCount:
    """The number of partitions, and the number of values of each field."""

    partitions: int
    values: dict[PartitionField, int]
    is_exact: bool
    """Whether all files have this spec; otherwise the number is an estimate."""


def count_partitions(
    fields: Sequence[PartitionField], types: Sequence[str], size: TableSize
) -> PartitionCount:
    """Count the partitions of a spec; a field with unknown values counts as one value.

    :param types: the type of each field's column.
    """
    current = [dict(partition) for partition in size.partitions]
    values = {}
    for field, column_type in zip(fields, types, strict=True):
        if all(field in partition for partition in current):
            values[field] = len({partition[field] for partition in current})
        else:
            values[field] = min(_spread(field, column_type, size), size.rows)
    if all(partition.keys() == set(fields) for partition in current):
        return PartitionCount(len(current), values, is_exact=True)
    return PartitionCount(min(math.prod(values.values()), size.rows), values, is_exact=False)


def _spread(field: PartitionField, column_type: str, size: TableSize) -> int:
    if field.transform == "bucket":
        return field.width or 1
    if field.column not in size.bounds:
        return 2 if column_type == "boolean" else 1
    low, high = size.bounds[field.column]
    if field.transform in _UNIT_DAYS:
        day = 1 if column_type == "date" else _DAY_US
        return int((high - low) / (day * _UNIT_DAYS[field.transform])) + 1
    return (high - low) // (field.width or 1) + 1
