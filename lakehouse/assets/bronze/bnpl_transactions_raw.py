"""`bronze.bnpl_transactions_raw`: delivered "buy now, pay later" transactions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.casts import cast_sql
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.table import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEED = Feed(
    name="bnpl",
    table="bronze.bnpl_transactions_raw",
    columns=[
        FeedColumn(
            "transaction_id",
            "Identifier of the transaction; several rows of one are its versions.",
        ),
        FeedColumn("customer_id", "Identifier of the customer."),
        FeedColumn("merchant_id", "Identifier of the merchant."),
        FeedColumn("merchant_category", "What the merchant sells."),
        FeedColumn("amount", "Amount in units of the currency, with at most two decimals."),
        FeedColumn("currency", "ISO 4217 code."),
        FeedColumn("installments", "In how many parts the amount is paid."),
        FeedColumn(
            "payment_method",
            "What the instalments are paid with; older files lack it.",
            optional=True,
        ),
        FeedColumn("status", "What became of the transaction."),
        FeedColumn("transaction_date", "Day of the transaction, or a moment on it."),
        FeedColumn("created_at", "When the source wrote this version of the transaction."),
        FeedColumn("customer_email", "Address of the customer.", personal=True),
        FeedColumn("region", "Where the transaction was made."),
    ],
    time_zone="Asia/Kuala_Lumpur",
    subject="customer_id",
    moment="created_at",
    expected_within=timedelta(hours=36),
)

TABLE = bronze_table(
    FEED,
    "Buy now, pay later transactions as they were delivered, each row with its source.",
    extra=[
        Column(
            "_event_date",
            "date",
            "Day of the transaction in the feed's time zone, where it can be read.",
        )
    ],
    # A day is recomputed from the files of that day only.
    partitioning=["_event_date"],
    # A delivered file contains few days, so a shuffle by day would be wasted.
    properties={"write.distribution-mode": "none"},
    owner="data-platform",
)


@feed_asset(FEED, TABLE)
def bnpl_transactions_raw(delivered: DataFrame) -> DataFrame:
    """Buy now, pay later transactions as delivered in all files of the feed `bnpl`.

    Values are strings, as in the files. Each row has its file, its row number in the file, and
    the time of ingestion.
    """
    event_date = cast_sql("transaction_date", "date", FEED.time_zone)
    return delivered.selectExpr("*", f"{event_date} AS _event_date")
