"""Infers the declaration of an undeclared table from the DataFrame of a plain asset."""

from typing import TYPE_CHECKING

from lakehouse.errors import FrameMismatch
from lakehouse.iceberg.metadata.spark_types import of_spark
from lakehouse.tables.table import Column, IcebergTable, Overwrite, OverwritePartitions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def inferred_table(
    name: str, comment: str, schema: "StructType", *, by: str | None = None
) -> IcebergTable:
    """Return a table with the columns of the DataFrame, overwritten by each write.

    :param by: partition column; if set, a write overwrites only the run's partitions.
    :raises FrameMismatch: the DataFrame has no column `by`.
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
