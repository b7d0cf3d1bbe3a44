"""`bronze.raw_fruits`: delivered fruits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEED = Feed(
    name="fruits",
    table="bronze.raw_fruits",
    columns=[
        FeedColumn("id", "Identifier of the fruit, a whole number."),
        FeedColumn("fruit", "Common name."),
        FeedColumn("berry", "Whether it is sold as a berry: true or false."),
    ],
    expected_within=timedelta(days=31),
)

TABLE = bronze_table(
    FEED, "Fruits as they were delivered, each row with its source.", owner="data-platform"
)


@feed_asset(FEED, TABLE)
def raw_fruits(delivered: DataFrame) -> DataFrame:
    """Fruits as delivered in all files of the feed `fruits`, once each.

    Values are strings, as in the files. Each row has its file, its row number in the file, and
    the time of ingestion.
    """
    return delivered
