"""The declaration of a table that nobody declared, from the frame that a plain asset
returned.
"""

from typing import TYPE_CHECKING

from lakehouse.errors import FrameMismatch
from lakehouse.iceberg.metadata.spark_types import of_spark
from lakehouse.tables.table import Column, IcebergTable, Overwrite, OverwritePartitions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def inferred_table(
    name: str, comment: str, schema: "StructType", *, by: str | None = None
) -> IcebergTable:
    """Return a table of the frame's columns, replaced by each write; with `by`, only the run's
    partitions of it.

    :param by: the column that the asset's partitions are values or spans of.
    :raises FrameMismatch: when the frame has no column `by`.
    """
    columns = [Column(field.name, str(of_spark(field.dataType))) for field in schema.fields]
    if by is None:
        return IcebergTable(name, comment, columns, write=Overwrite())
    types = {column.name: column.type for column in columns}
    if by not in types:
        raise FrameMismatch(
            f"{name} is partitioned by {by}, which its frame lacks; it has {', '.join(types)}.",
            next_step="Name one of these in the asset's metadata as partition_expr.",
        )
    partitioning = f"days({by})" if types[by].startswith("timestamp") else by
    return IcebergTable(
        name, comment, columns, write=OverwritePartitions(by), partitioning=[partitioning]
    )
