"""Joins where one side is small, and Spark cannot know it; and unions of any number of
frames.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FEW = 1_000_000
"""Rows of a key and a few numbers that one process holds with ease."""
FEW_WHOLE = 10_000
"""Rows of all columns that one process holds with ease."""
_BLOOM_FILTER = "spark.sql.optimizer.runtime.bloomFilter."
_WITH_BLOOM_FILTER = {
    f"{_BLOOM_FILTER}enabled": "true",
    # Of what a merge reads of a table: key, file and position. That of a million rows or fewer
    # is shuffled as quickly as a filter is made.
    f"{_BLOOM_FILTER}applicationSideScanSizeThreshold": "64m",
    # Spark does not know the size of rows that are kept; their number is known here.
    f"{_BLOOM_FILTER}creationSideThreshold": f"{2**63 - 1}b",
}


def together(frames: "Iterable[DataFrame]", *, allow_missing: bool = False) -> "DataFrame":
    """Return the rows of one or more frames, columns by name.

    :param allow_missing: whether a frame may lack columns of others; they are null there.
    """
    return reduce(
        lambda rows, more: rows.unionByName(more, allowMissingColumns=allow_missing), frames
    )


def having(rows: "DataFrame", keys: "DataFrame", on: "Column", count: int) -> "DataFrame":
    """Return the rows that have any of some keys; where these are few, the rows are not
    shuffled for it.

    :param count: how many keys there are.
    """
    from pyspark.sql.functions import broadcast

    return rows.join(broadcast(keys) if count < FEW else keys, on, "left_semi")


def same_key_sql(key: "Sequence[str]", left: str, right: str) -> str:
    """Return the SQL predicate that two rows, of tables with these aliases, have one key.

    NULL is a value like any other, as it is to a window: by `=` a row whose key has one would
    be of no key, so that what was rejected stayed, and what stays went twice.
    """
    terms = (f"{left}.{identifier(name)} <=> {right}.{identifier(name)}" for name in key)
    return " AND ".join(terms)


def same_key(key: "Sequence[str]", left: str, right: str) -> "Column":
    """Return the same as the condition of a join."""
    from pyspark.sql.functions import expr

    return expr(same_key_sql(key, left, right))


def with_keys(
    rows: "DataFrame", keys: "DataFrame", key: "Sequence[str]", count: int = FEW
) -> "DataFrame":
    """Return the rows that have any of some keys; where these are known to be few, the rows are
    not shuffled for it.
    """
    return having(rows.alias("l"), keys.alias("r"), same_key(key, "l", "r"), count)


def without_keys(rows: "DataFrame", keys: "DataFrame", key: "Sequence[str]") -> "DataFrame":
    """Return the rows that have none of some keys."""
    return rows.alias("l").join(keys.alias("r"), same_key(key, "l", "r"), "left_anti")


def sized(rows: "DataFrame", count: int) -> "DataFrame":
    """Return rows as they are, but few ones so that Spark knows how few, and shuffles nothing
    to join them.

    For a join that takes no hint, such as that of a MERGE: there Spark goes by the size, which
    a limit tells.

    :param count: how many rows there are, exactly.
    """
    return rows.coalesce(1).limit(count) if count < FEW_WHOLE else rows


def settings_to_join_few(count: int) -> dict[str, str]:
    """Return settings of Spark by which a statement drops rows of a large table before it
    shuffles them for a join: a Bloom filter of the other rows tells that none of these has
    their key. None where the other rows are many.

    Spark makes the filter by itself from 10 GB on. A merge of 1 % into 10 million rows shuffled
    all of them, and took 1.6 times as long (benchmarks/bench_delete_and_upsert.py). The
    settings change no result.

    :param count: how many the other rows are.
    """
    return dict(_WITH_BLOOM_FILTER) if count <= FEW else {}
