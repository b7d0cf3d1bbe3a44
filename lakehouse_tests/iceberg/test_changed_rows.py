"""The keys of rows that came, went or changed, and of no row that was carried along."""

import pytest

from lakehouse.iceberg.read.pinned_frames import keys_of_changed_rows

SCHEMA = "k bigint, a string, b string, m map<string,int>, s struct<x:int>"
ROWS = [
    (1, "x", None, {"p": 1}, (1,)),
    (1, "y", None, None, None),
    (2, None, "z", None, (2,)),
]


def changed(spark, before, now, schema=SCHEMA, names=None):
    frames = (spark.createDataFrame(now, SCHEMA), spark.createDataFrame(before, schema))
    names = names or {name: name for name in frames[0].columns}
    return sorted(
        (row[0] for row in keys_of_changed_rows(*frames, names, ["k"]).collect()), key=str
    )


@pytest.mark.parametrize(
    ("before", "now", "keys"),
    [
        (ROWS, list(reversed(ROWS)), []),
        (ROWS, ROWS[:2], [2]),
        (ROWS[1:], ROWS, [1]),
        (ROWS, [*ROWS, ROWS[2]], [2]),
        ([(1, "x", None, None, None)], [(1, None, "x", None, None)], [1]),
        ([(1, None, None, {"p": 1}, None)], [(1, None, None, {"p": 2}, None)], [1]),
        ([(1, None, None, None, (None,))], [(1, None, None, None, (3,))], [1]),
        ([(1, "x", None, None, None)], [(2, "x", None, None, None)], [1, 2]),
        ([], [(None, "x", None, None, None)], [None]),
    ],
)
def test_a_key_is_told_when_its_rows_are_not_the_same(spark, before, now, keys):
    assert changed(spark, before, now) == keys


def test_a_column_that_was_renamed_and_widened_is_the_same(spark):
    names = {"k": "k", "a": "old", "b": None, "m": None, "s": "s"}
    before = [(1, "x", (1,)), (2, "y", None)]
    now = [(1, "x", None, None, (1,)), (2, "y", "new", None, None)]
    assert changed(spark, before, now, "k int, old string, s struct<x:int>", names) == [2]
