"""The declaration of a table that nobody declared, from the frame that a plain asset
returned.
"""

import re
from typing import TYPE_CHECKING

from lakehouse.errors import FrameMismatch
from lakehouse.tables.table import Column, IcebergTable, Overwrite, OverwritePartitions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Iceberg has no integers below 32 bits and no limited strings; Spark's Iceberg writer takes
# these for them.
_WIDER = (
    (re.compile(r"\b(tinyint|smallint)\b"), "int"),
    (re.compile(r"\b(var)?char\(\d+\)"), "string"),
)


def inferred_table(
    name: str, comment: str, schema: "StructType", *, by: str | None = None
) -> IcebergTable:
    """Return a table of the frame's columns, replaced by each write; with `by`, only the run's
    partitions of it.

    :param by: the column that the asset's partitions are values or spans of.
    :raises FrameMismatch: when the frame has no column `by`.
    """
    columns = [
        Column(field.name, _type(field.dataType.simpleString())) for field in schema.fields
    ]
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


def _type(text: str) -> str:
    for narrow, wider in _WIDER:
        text = narrow.sub(wider, text)
    return text
