"""`silver.fruits`: one row per fruit, as last delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.assets.bronze.raw_fruits import TABLE as RAW
from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.rules.rows import excluded, expression, not_blank, not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import schema_as_declared
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.quoting import literals
from lakehouse.tables.table import Column, IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEFT_OUT = ("Banana", "Blueberry")

TABLE = IcebergTable(
    name="silver.fruits",
    comment="One row for each fruit, as last delivered.",
    rows_of=RAW,
    columns=[
        Column("id", "bigint", "Identifier in the latest delivery."),
        Column("fruit", "string", "Common name; the merge key."),
        Column("berry", "boolean", "Whether it is sold as a berry."),
        Column("update_timestamp", "timestamp", "When this row was last written."),
    ],
    partitioning=["berry"],
    write=Merge(on=["fruit"], stamp="update_timestamp", within_file="first"),
    rules=[
        not_null("fruit"),
        not_blank("fruit"),
        unique("fruit"),
        excluded("fruit", LEFT_OUT, on_failure="block"),
        expression(
            "excluded_fruit_in_any_spelling",
            f"lower(trim(fruit)) NOT IN {literals(name.lower() for name in LEFT_OUT)}",
            description="no spelling of a fruit that is left out remains",
            columns=["fruit"],
            on_failure="block",
        ),
        schema_as_declared(on_failure="warn"),
    ],
    owner="data-platform",
)


@iceberg_asset(TABLE, inputs={"raw_fruits": versions_of(RAW)})
def fruits(raw_fruits: DataFrame) -> DataFrame:
    """One row for each fruit, as last delivered, without Banana and Blueberry.

    Within a file the first row of a name is used; a later file replaces an earlier one. Rows
    with an invalid id or without a name are in `silver.fruits_quarantine`.
    """
    return raw_fruits.where(f"fruit IS NULL OR fruit NOT IN {literals(LEFT_OUT)}")
