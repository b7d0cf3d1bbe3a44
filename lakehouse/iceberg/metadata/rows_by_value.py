"""Row counts of a table by value of a partition column, from its manifests."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.changed_partitions import partition_fields
from lakehouse.iceberg.metadata.manifests import read_files

if TYPE_CHECKING:
    from pyiceberg.table import Table


def rows_by_value(table: "Table", snapshot_id: int, column: str) -> Counter[Any]:
    """Return the rows in data files by value of a partition column, if their spec has it."""
    fields = partition_fields(table, column)
    rows: Counter[Any] = Counter()
    for file in read_files(table, snapshot_id):
        field = fields.get(file.spec_id)
        if field is not None and file.content == "data":
            rows[file.partition[field.name]] += file.record_count
    return rows
