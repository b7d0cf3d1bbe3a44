"""The health of tables is one append an occasion, and observations that Dagster plots; no
Spark is started for it.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import pyarrow as pa
import pytest

from lakehouse.definitions import TABLES
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.health_metrics import SnapshotPin
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings
from lakehouse.upkeep.health_records import record_health
from lakehouse_tests.without_spark import create_numbers, engine_without_spark

HEALTH = TABLES["monitoring.table_health"]
DECLARED = ("silver.fruits", "gold.customer_profiles", HEALTH.name)
NAMES = ("silver.fruits", "silver.other")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def engine(settings: Settings) -> Engine:
    """Two tables, of two files and of none; nothing declares the second."""
    made = engine_without_spark(settings)
    create_numbers(made, "silver.fruits", [[0], [1]])
    create_numbers(made, "silver.other")
    return made


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as opened:
        yield opened


def kept(engine: Engine) -> list[dict]:
    rows = engine.catalog.load(HEALTH.name).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["measured_at"], row["table_name"]))


def observed(instance: dg.DagsterInstance, table: str) -> list[dict]:
    records = instance.fetch_observations(asset_key(table), limit=10).records
    return [record.asset_observation.metadata for record in records]


def test_all_tables_are_one_append(engine: Engine, instance: dg.DagsterInstance) -> None:
    measured = record_health(instance, engine, HEALTH, NAMES, DECLARED, "first", now=NOW)
    assert [health.table for health in measured] == ["silver.fruits", "silver.other"]
    fruits, other = kept(engine)
    assert (fruits["table_name"], fruits["measured_at"], fruits["run_id"]) == (
        "silver.fruits",
        NOW,
        "first",
    )
    assert fruits["snapshot_id"] == read_history(engine, "silver.fruits").main.snapshot_id
    assert (fruits["data_files"], fruits["fewer_files"], fruits["snapshots"]) == (2, 1, 2)
    assert fruits["metadata_share"] == fruits["metadata_bytes"] / fruits["data_bytes"]
    assert (other["data_files"], other["metadata_share"], other["p90_file_bytes"]) == (
        0,
        None,
        None,
    )
    assert len(read_history(engine, HEALTH.name).snapshots) == 1
    assert [name for name in HEALTH.column_names if fruits[name] is None] == []


def test_declared_tables_show_numbers_that_plot(
    engine: Engine, instance: dg.DagsterInstance
) -> None:
    pin = SnapshotPin("tag month_end", 1, NOW)
    record_health(
        instance, engine, HEALTH, NAMES, DECLARED, "first", find_pins=lambda table: [pin]
    )
    (metadata,) = observed(instance, "silver.fruits")
    numbers = (dg.IntMetadataValue, dg.FloatMetadataValue)
    assert {type(value) for value in metadata.values()} <= set(numbers)
    assert metadata["health/small_files"].value == 2
    assert metadata["health/pins"].value == 1
    assert observed(instance, "silver.other") == []


@pytest.mark.long
def test_an_occasion_is_recorded_once(engine: Engine, instance: dg.DagsterInstance) -> None:
    for occasion in ("first", "first", "second"):
        record_health(instance, engine, HEALTH, NAMES, DECLARED, occasion)
    assert [row["run_id"] for row in kept(engine)] == ["first"] * 2 + ["second"] * 2
    assert len(observed(instance, "silver.fruits")) == 2


def test_only_what_changed_since_it_was_measured_is_measured_again(
    engine: Engine, instance: dg.DagsterInstance
) -> None:
    known = {}
    for name in NAMES:
        # What no measuring comes to.
        known[name] = replace(read_table_health(engine, name), manifests=77)
    engine.catalog.load("silver.fruits").append(pa.table({"id": [9]}))

    record_health(instance, engine, HEALTH, NAMES, DECLARED, "first", known=known, now=NOW)

    fruits, other = kept(engine)
    assert (fruits["manifests"], fruits["data_files"]) == (3, 3)
    assert (other["manifests"], other["measured_at"]) == (77, NOW)


def test_a_damaged_table_hinders_no_other(
    engine: Engine, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    location = engine.catalog.load("silver.other").location()
    shutil.rmtree(Path(urlsplit(location).path))
    measured = record_health(instance, engine, HEALTH, NAMES, DECLARED, "first")
    assert [health.table for health in measured] == ["silver.fruits"]
    assert "The health of silver.other was not measured" in caplog.text
