"""Invoice lines as they were delivered, typed by day, and summed by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.iceberg.read.inputs import latest, versions_of
from lakehouse.iceberg.rules.rows import dated, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.casts import cast_sql
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import Column, IcebergTable, Versions, by_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SINCE = "2024-01-01"
FEED = Feed(
    name="invoice_lines",
    table="bronze.invoice_lines_raw",
    columns=["line_id", "invoice_no", "sold_on", "quantity", "price"],
    time_zone="UTC",
)
RAW = bronze_table(
    FEED,
    "Invoice lines as delivered, each with its source.",
    extra=[Column("sold_day", "date", "Day of sold_on.")],
    partitioning=["sold_day"],
)
LINES = IcebergTable(
    name="silver.invoice_lines",
    comment="One row for each line_id, as last delivered.",
    rows_of=RAW,
    columns=[
        Column("line_id", "bigint"),
        Column("invoice_no", "bigint"),
        Column("sold_on", "date"),
        Column("quantity", "int"),
        Column("price", "decimal(10,2)"),
    ],
    write=by_day("sold_on", since=SINCE),
    versions=Versions(
        of=["line_id"], newest=["_ingested_at", "_source_file", "_source_row", "_source_sha256"]
    ),
    rules=[
        *map(not_null, ["line_id", "sold_on", "invoice_no", "quantity", "price"]),
        unique("line_id"),
        dated("sold_on", since=SINCE, until="_ingested_at", time_zone="UTC"),
    ],
)
DAILY = IcebergTable(
    name="gold.invoice_lines_daily",
    comment="One row for each day of silver.invoice_lines, in figures.",
    columns=[
        Column("sold_on", "date"),
        Column("invoice_lines", "bigint", "How many rows there are."),
        Column("quantity", "bigint", "Sum of quantity."),
        Column("price", "decimal(20,2)", "Sum of price."),
    ],
    write=by_day("sold_on", like=LINES),
    rules=[not_null("sold_on"), unique("sold_on")],
)


@feed_asset(FEED, RAW)
def invoice_lines_raw(delivered: DataFrame) -> DataFrame:
    """Rows of the feed as they were delivered, each with its source."""
    day = cast_sql("sold_on", "date", FEED.time_zone)
    return delivered.selectExpr("*", f"{day} AS sold_day")


@iceberg_asset(LINES, inputs={"delivered": versions_of(RAW, by="sold_day")})
def invoice_lines(delivered: DataFrame) -> DataFrame:
    """One row for each line_id, as last delivered."""
    return delivered


@iceberg_asset(DAILY, inputs={"lines": latest(LINES, by="sold_on")})
def invoice_lines_daily(lines: DataFrame) -> DataFrame:
    """One row for each day of silver.invoice_lines, with sums."""
    from pyspark.sql.functions import expr

    return lines.groupBy("sold_on").agg(
        expr("count(1) AS invoice_lines"),
        expr("sum(quantity) AS quantity"),
        expr("sum(price) AS price"),
    )
