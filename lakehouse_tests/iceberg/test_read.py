"""Reads: always pinned, incremental where that is exact, and full where it is not."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import Input, as_of, incremental, latest
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.read.pinned_inputs import pin
from lakehouse.iceberg.values.write_result import Unchanged
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.spark import spark_session as sessions
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.conftest import skip_old_iceberg
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import (
    DAYS,
    EVENTS,
    MONDAY,
    TUESDAY,
    put,
    run_of,
    snapshot_id,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
COPY = IcebergTable(
    name="silver.copy",
    comment="",
    columns=[Column("id", "bigint"), Column("v", "int")],
    write=Append(once_by=()),
)
INPUTS = {"events": incremental(EVENTS.name)}


def add(engine: Engine, *ids: int) -> None:
    put(engine, EVENTS, [(id_, 0) for id_ in ids])


def ids(engine: Engine, given: Input, where: str | None = None) -> list[int]:
    pinned = pin(engine, {"x": given}, COPY.name)["x"]
    return sorted(row["id"] for row in read(engine, pinned, where).collect())


def copy(engine: Engine) -> None:
    write(engine, COPY, lambda events: events, INPUTS)


def test_is_pinned_against_later_commits(engine: Engine) -> None:
    add(engine, 1)
    pinned = pin(engine, {"x": latest(EVENTS.name)}, EVENTS.name)["x"]
    frame = read(engine, pinned)
    add(engine, 2)
    assert [row["id"] for row in frame.collect()] == [1]


@glue_in_test_all
def test_narrows_an_input_to_the_runs_partitions(engine: Engine) -> None:
    put(engine, DAYS, [(MONDAY, 1, 1), (TUESDAY, 2, 2)], run=run_of(MONDAY, TUESDAY))
    target = IcebergTable(
        name="gold.one", comment="", columns=[Column("v", "int")], write=Append(once_by=())
    )
    inputs = {"silver": latest(DAYS.name, by="d")}
    write(engine, target, lambda silver: silver.select("v"), inputs, run_of(TUESDAY))
    assert [
        row["v"] for row in engine.spark.table(engine.catalog.sql_name("gold.one")).collect()
    ] == [2]


@pytest.mark.scenario
def test_as_of_snapshot_tag_and_moment(engine: Engine) -> None:
    add(engine, 1)
    first = snapshot_id(engine, EVENTS.name)
    engine.sql(f"ALTER TABLE {engine.catalog.sql_name(EVENTS.name)} CREATE TAG monthly")
    published = read_history(engine, EVENTS.name).log[-1][0]
    add(engine, 2)
    copy(engine)
    assert ids(engine, as_of(EVENTS.name, snapshot_id=first)) == [1]
    assert ids(engine, as_of(EVENTS.name, tag="monthly")) == [1]
    assert ids(engine, as_of(EVENTS.name, timestamp=published)) == [1]
    assert ids(engine, as_of(EVENTS.name, timestamp=datetime.now(UTC))) == [1, 2]


@glue_in_test_all
def test_incremental_reads_what_was_appended_since(engine: Engine) -> None:
    add(engine, 1)
    copy(engine)
    add(engine, 2)
    add(engine, 3)
    assert ids(engine, INPUTS["events"]) == [2, 3]
    copy(engine)
    assert ids(engine, INPUTS["events"]) == []


def test_incremental_without_news_starts_no_job(embedded_engine: Engine, count_jobs) -> None:
    add(embedded_engine, 1)
    copy(embedded_engine)
    with count_jobs() as counted:
        done = write(embedded_engine, COPY, lambda events: events, INPUTS)
    assert isinstance(done, Unchanged) and counted.jobs == 0


@glue_in_test_all
def test_incremental_passes_over_a_compaction(engine: Engine) -> None:
    add(engine, 1)
    add(engine, 2)
    copy(engine)
    add(engine, 3)
    catalog = engine.catalog.name
    engine.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => '{catalog}.{EVENTS.name}', "
        "options => map('rewrite-all', 'true'))"
    )
    add(engine, 4)
    assert ids(engine, INPUTS["events"]) == [3, 4]


@glue_in_test_all
def test_incremental_falls_back_to_a_full_read_after_a_delete(engine: Engine) -> None:
    add(engine, 1, 2)
    copy(engine)
    engine.sql(f"DELETE FROM {engine.catalog.sql_name(EVENTS.name)} WHERE id = 1")
    add(engine, 3)
    pinned = pin(engine, INPUTS, COPY.name)["events"]
    assert "read in full" in pinned.note and ids(engine, INPUTS["events"]) == [2, 3]


@glue_in_test_all
def test_the_watermark_follows_a_rollback(engine: Engine) -> None:
    add(engine, 1)
    copy(engine)
    before = snapshot_id(engine, COPY.name)
    add(engine, 2)
    copy(engine)
    catalog = engine.catalog.name
    engine.sql(f"CALL {catalog}.system.rollback_to_snapshot('{catalog}.{COPY.name}', {before})")
    assert ids(engine, INPUTS["events"]) == [2]


def test_of_two_homes_in_one_process_each_reads_its_own(
    spark: "SparkSession", settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both call their catalog by the same name, and one is used last before the other is first."""
    homes = [replace(skip_old_iceberg(settings), home=tmp_path / name) for name in "ab"]
    engines = [open_engine(home) for home in homes]
    for first, engine in enumerate(engines):
        add(engine, first)
    for home, engine in zip(homes, engines, strict=True):
        monkeypatch.delitem(sessions._sessions, sessions._key(home, engine.catalog))
    engines[1].spark.createDataFrame([], "used int")

    assert [ids(engine, latest(EVENTS.name)) for engine in engines] == [[0], [1]]
