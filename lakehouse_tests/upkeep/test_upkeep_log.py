"""Upkeep records are appended once per run, and read as they were written."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from lakehouse.assets.monitoring.upkeep_runs import TABLE as LOG
from lakehouse.settings import Settings
from lakehouse.upkeep.upkeep_records import PastUpkeep, UpkeepRecord, past_upkeep, record_upkeep
from lakehouse_tests.upkeep.sick_tables import NOW
from lakehouse_tests.without_spark import engine_without_spark

pytestmark = pytest.mark.unit

RECORD = UpkeepRecord(
    "silver.t",
    "compact",
    "partial",
    NOW,
    "1.json",
    reason="a conflict",
    promised_fewer_files=11,
    promised_cost_bytes=1000,
    step_metrics={"files_before": 12.0, "files_after": 1.0},
    had_conflict=True,
)


def test_stored_names_of_fields_stay() -> None:
    stored = json.loads(RECORD.to_json())
    assert (stored["figures"]["files_before"], stored["lost_race"]) == (12, True)


def test_fields_of_earlier_releases_are_ignored() -> None:
    stored = json.loads(RECORD.to_json())
    stored |= {"uncorrected": {"fewer_files": 11, "cost_bytes": 1000}, "partitions": []}
    assert UpkeepRecord.from_json(json.dumps(stored)) == RECORD


def test_a_run_is_recorded_once_and_read_as_it_was(settings: Settings) -> None:
    engine = engine_without_spark(settings)
    records = [RECORD, replace(RECORD, table="silver.u", step="expire_snapshots")]
    assert past_upkeep(engine.catalog, LOG.name, NOW) == PastUpkeep()
    assert record_upkeep(engine, LOG, [], "run_0") is None
    assert not engine.catalog.has(LOG.name)

    assert record_upkeep(engine, LOG, records, "run_1") is not None
    assert record_upkeep(engine, LOG, records, "run_1") is None

    past = past_upkeep(engine.catalog, LOG.name, NOW + timedelta(days=1))
    assert sorted(past.records, key=lambda record: record.table) == records
    rows = engine.catalog.load(LOG.name).scan().to_arrow().to_pylist()
    assert [(row["promised_fewer_files"], row["fewer_files"]) for row in rows] == [(11, 11)] * 2


def test_records_older_than_a_quarter_are_not_read(settings: Settings) -> None:
    engine = engine_without_spark(settings)
    for days in (89, 91):
        record = replace(RECORD, ended_at=NOW - timedelta(days=days))
        record_upkeep(engine, LOG, [record], f"run_{days}")
    assert len(past_upkeep(engine.catalog, LOG.name, NOW).records) == 1
