"""Rows appended without Spark: once per run, as declared, and the same to every engine."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakehouse.errors import DeclarationError, TableBusy
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.evolve.planning import plan_now
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.write.append_without_spark import (
    DIRECT_APPENDS,
    LOCK_SECONDS,
    append_once,
)
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.examples import glue_in_test_all

TABLE = IcebergTable(
    "monitoring.numbers",
    "What was counted.",
    [
        Column("name", "string", "What.", required=True),
        Column("value", "double"),
        Column("at", "timestamp"),
        Column("snapshot_id", "bigint"),
        Column("run_id", "string", required=True),
    ],
    write=Append(once_by=("run_id",)),
    properties=DIRECT_APPENDS,
)
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def append(
    engine: Engine, run_id: str, *values: float, table: IcebergTable = TABLE
) -> int | None:
    common = {"at": AT, "run_id": run_id}
    rows = [
        {"name": f"n{at}", "value": value, "snapshot_id": 2**62 + at, **common}
        for at, value in enumerate(values)
    ]
    return append_once(engine, table, rows, run_id, made_at="at")


def no_spark() -> None:
    raise AssertionError("Spark was started")


@pytest.fixture
def without_spark(engine: Engine) -> Engine:
    return replace(engine, session=no_spark)


@glue_in_test_all
def test_each_engine_reads_what_was_appended(engine: Engine, without_spark: Engine) -> None:
    append(without_spark, "a", 1.5, 2.5)
    append(without_spark, "b", 4.0)

    loaded = engine.catalog.load(TABLE.name)
    said = 'SELECT count(*), sum(value), max(snapshot_id), min("at") FROM numbers'
    by_duckdb = loaded.scan().to_duckdb("numbers").sql(said).fetchone()
    frame = engine.spark.table(engine.catalog.sql_name(TABLE.name))
    by_spark = tuple(
        frame.selectExpr("count(*)", "sum(value)", "max(snapshot_id)", "min(at)").first()
    )
    by_arrow = loaded.scan().to_arrow()
    assert by_duckdb[:3] == by_spark[:3] == (3, 8.0, 2**62 + 1)
    assert (by_arrow.num_rows, sum(by_arrow["value"].to_pylist())) == (3, 8.0)
    assert by_arrow["at"][0].as_py() == AT == by_duckdb[3].astimezone(UTC)
    assert by_spark[3] == AT.replace(tzinfo=None)


def test_a_run_is_appended_once(without_spark: Engine) -> None:
    first = append(without_spark, "a", 1.0)

    assert first is not None
    assert append(without_spark, "a", 1.0) is None
    assert read_history(without_spark, TABLE.name).main.snapshot_id == first


@glue_in_test_all
def test_the_table_is_as_declared_and_its_commits_are_stamped(
    engine: Engine, without_spark: Engine
) -> None:
    append(without_spark, "a", 1.0)

    assert plan_now(engine, TABLE).is_empty
    commit = read_history(engine, TABLE.name).main.commit
    assert (commit.kind, commit.run_id, commit.declaration) == (
        "write",
        "a",
        TABLE.declaration_hash,
    )


def test_many_at_once_lose_nothing_and_double_nothing(embedded_engine: Engine) -> None:
    engine = replace(embedded_engine, session=no_spark)
    runs = [f"run-{at % 6}" for at in range(12)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda run: append(engine, run, 1.0), runs))

    appended = engine.catalog.load(TABLE.name).scan().to_arrow()["run_id"].to_pylist()
    assert sorted(appended) == sorted(set(runs))


def test_a_table_that_is_held_is_said_to_be_busy(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LOCK_SECONDS < 60
    monkeypatch.setattr("lakehouse.iceberg.write.append_without_spark.LOCK_SECONDS", 0.1)
    with (
        table_lock(embedded_engine, TABLE.name),
        pytest.raises(TableBusy, match=r"monitoring\.numbers"),
    ):
        append(embedded_engine, "a", 1.0)


def test_what_needs_an_audit_is_rejected(embedded_engine: Engine) -> None:
    with pytest.raises(DeclarationError, match="without an audit"):
        append(embedded_engine, "a", 1.0, table=replace(TABLE, write=Append(once_by=("name",))))
