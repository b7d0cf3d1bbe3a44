"""Joins by keys: few keys or rows are broadcast, so that a large side is not shuffled."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BROADCAST_KEY_LIMIT = 1_000_000
"""Rows with a key and a few numbers that fit easily into one process."""
BROADCAST_ROW_LIMIT = 10_000
"""Rows with all columns that fit easily into one process."""
_BLOOM_FILTER = "spark.sql.optimizer.runtime.bloomFilter."
_WITH_BLOOM_FILTER = {
    f"{_BLOOM_FILTER}enabled": "true",
    # Size of what a merge reads of the target: key, file and position. Up to a million rows, a
    # shuffle is as fast as building the filter.
    f"{_BLOOM_FILTER}applicationSideScanSizeThreshold": "64m",
    # Spark does not know the size of cached rows; the caller knows their number.
    f"{_BLOOM_FILTER}creationSideThreshold": f"{2**63 - 1}b",
}


def having(rows: "DataFrame", keys: "DataFrame", on: "Column", count: int) -> "DataFrame":
    """Return the rows with any of `count` keys; few keys are broadcast."""
    from pyspark.sql.functions import broadcast

    return rows.join(broadcast(keys) if count < BROADCAST_KEY_LIMIT else keys, on, "left_semi")


def same_key_sql(key: "Sequence[str]", left: str, right: str) -> str:
    """Return the SQL predicate that rows of two aliases have the same key, also with NULL."""
    terms = (f"{left}.{identifier(name)} <=> {right}.{identifier(name)}" for name in key)
    return " AND ".join(terms)


def same_key(key: "Sequence[str]", left: str, right: str) -> "Column":
    """Return `same_key_sql` as a join condition."""
    from pyspark.sql.functions import expr

    return expr(same_key_sql(key, left, right))


def with_keys(
    rows: "DataFrame", keys: "DataFrame", key: "Sequence[str]", count: int = BROADCAST_KEY_LIMIT
) -> "DataFrame":
    """Return the rows with any of some keys, without a shuffle if the keys are few."""
    return having(rows.alias("l"), keys.alias("r"), same_key(key, "l", "r"), count)


def without_keys(rows: "DataFrame", keys: "DataFrame", key: "Sequence[str]") -> "DataFrame":
    """Return the rows with none of some keys."""
    return rows.alias("l").join(keys.alias("r"), same_key(key, "l", "r"), "left_anti")


def sized(rows: "DataFrame", count: int) -> "DataFrame":
    """Return the rows; few rows get a limit, so that Spark joins them without a shuffle."""
    return rows.coalesce(1).limit(count) if count < BROADCAST_ROW_LIMIT else rows


def settings_to_join_few(count: int) -> dict[str, str]:
    """Return Spark settings that filter a large table by a Bloom filter of a few keys.

    Spark creates it by itself only from 10 GB on. Without it, a merge of 1 % into 10 million
    rows took 1.6 times as long (benchmarks/bench_delete_and_upsert.py).
    """
    return dict(_WITH_BLOOM_FILTER) if count <= BROADCAST_KEY_LIMIT else {}
