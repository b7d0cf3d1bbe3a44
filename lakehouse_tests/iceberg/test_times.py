"""Times without a zone, and times within one millisecond, wherever rows are looked for or compared
by them, on a machine whose own zone is not UTC.
"""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.pinned_frames import keys_of_changed_rows
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write import merge_rows
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.quoting import json_of
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse_tests.iceberg.declarations import content

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("far_from_utc")]
NINE = "TIMESTAMP_NTZ'2026-01-31 09:00:00'"
TEN = "TIMESTAMP_NTZ'2026-01-31 10:00:00'"
SEEN = IcebergTable(
    "silver.seen",
    "When each was seen.",
    [Column("id", "bigint"), Column("wall", "timestamp_ntz"), Column("v", "int")],
    Append(once_by=()),
)


def rows(engine: Engine, *selected: str) -> Callable[..., DataFrame]:
    return lambda **_: engine.sql(" UNION ALL ".join(f"SELECT {row}" for row in selected))


def seen(id_: int, wall: str, v: int) -> str:
    return f"{id_}L AS id, {wall} AS wall, {v} AS v"


def test_a_merge_finds_the_row_of_its_time(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_rows, "_is_small", lambda _: False)
    table = IcebergTable(
        SEEN.name, "", SEEN.columns, Merge(on=["id", "wall"], prune_by=["wall"])
    )
    write(embedded_engine, table, rows(embedded_engine, seen(1, NINE, 1), seen(2, TEN, 1)))
    done = write(
        embedded_engine, table, rows(embedded_engine, seen(1, NINE, 2), seen(3, TEN, 1))
    )
    assert isinstance(done, Published)
    assert (done.inserted_rows, done.updated_rows) == (1, 1)
    assert content(embedded_engine, table.name, "id", "v") == [(1, 2), (2, 1), (3, 1)]


EARLIER, LATER = "2026-01-31 09:00:00.123400", "2026-01-31 09:00:00.123900"


def test_a_merge_sees_a_change_within_a_millisecond(embedded_engine: Engine) -> None:
    kind = "struct<m:map<string,string>,at:timestamp,wall:timestamp_ntz>"
    table = IcebergTable(
        "silver.events", "", [Column("id", "bigint"), Column("e", kind)], Merge(on=["id"])
    )

    def event(id_: int, at: str, wall: str) -> str:
        parts = f"map('a', 'b'), 'at', TIMESTAMP'{at}Z', 'wall', TIMESTAMP_NTZ'{wall}'"
        return f"{id_}L AS id, named_struct('m', {parts}) AS e"

    write(
        embedded_engine,
        table,
        rows(embedded_engine, *(event(id_, EARLIER, EARLIER) for id_ in (1, 2, 3))),
    )
    done = write(
        embedded_engine,
        table,
        rows(
            embedded_engine,
            event(1, LATER, EARLIER),
            event(2, EARLIER, LATER),
            event(3, EARLIER, EARLIER),
        ),
    )
    assert isinstance(done, Published) and done.updated_rows == 2


def test_a_changed_key_is_seen_within_a_millisecond(spark: SparkSession) -> None:
    def of(at: str) -> DataFrame:
        return spark.sql(f"SELECT 1L AS k, named_struct('at', TIMESTAMP'{at}Z') AS s")

    changed = keys_of_changed_rows(of(LATER), of(EARLIER), {"k": "k", "s": "s"}, ["k"])
    assert [row["k"] for row in changed.collect()] == [1]


@pytest.mark.parametrize("keeps_nulls", [False, True])
def test_the_text_of_a_value_tells_times_apart(spark: SparkSession, keeps_nulls: bool) -> None:
    text = json_of("struct(*)", keeps_nulls=keeps_nulls)
    found = spark.sql(
        f"SELECT {text} AS t FROM (SELECT TIMESTAMP'{EARLIER}Z' AS at,"
        f" TIMESTAMP_NTZ'{LATER}' AS wall, CAST(NULL AS INT) AS n)"
    ).first()
    assert found is not None
    null = ',"n":null' if keeps_nulls else ""
    assert found["t"] == (
        f'{{"at":"2026-01-31T09:00:00.123400Z","wall":"2026-01-31T09:00:00.123900"{null}}}'
    )
