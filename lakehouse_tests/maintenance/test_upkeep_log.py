"""Records of upkeep: kept once a round, and read as they were."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.assets.monitoring.upkeep_runs import TABLE as LOG
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.maintenance.past_upkeep import PastUpkeep
from lakehouse.maintenance.upkeep_log import past_upkeep, record_upkeep
from lakehouse.maintenance.upkeep_plan import Estimate
from lakehouse.maintenance.upkeep_record import CompactedPartition, UpkeepRecord
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse_tests.maintenance.sick_tables import NOW, compacted, partition, table

pytestmark = pytest.mark.unit

COUNTS = st.integers(min_value=0, max_value=2**62)
RECORDS = st.builds(
    UpkeepRecord,
    table=st.text(min_size=1),
    step=st.sampled_from(["compact", "expire_snapshots", "drop_branches"]),
    outcome=st.sampled_from(["done", "skipped", "partial", "failed"]),
    ended_at=st.datetimes(timezones=st.just(UTC)),
    metadata_location=st.text(),
    run_id=st.text(),
    reason=st.text(),
    promised_fewer_files=COUNTS,
    promised_cost_bytes=COUNTS,
    uncorrected=st.builds(Estimate, COUNTS, COUNTS),
    step_metrics=st.dictionaries(st.text(), st.floats(allow_nan=False)),
    partitions=st.lists(
        st.builds(CompactedPartition, st.text(), st.text(), COUNTS, COUNTS)
    ).map(tuple),
    rows=COUNTS,
)


@given(record=RECORDS)
def test_a_record_is_read_from_json_as_it_was(record: UpkeepRecord) -> None:
    assert UpkeepRecord.from_json(record.to_json()) == record


def test_stored_names_of_fields_stay() -> None:
    record = UpkeepRecord("silver.t", "compact", "skipped", NOW, "1.json", had_conflict=True)
    stored = json.loads(record.to_json())
    assert (stored["figures"], stored["lost_race"]) == ({}, True)


@pytest.fixture
def engine(settings: Settings) -> Engine:
    """An engine that has no Spark."""

    def no_spark() -> None:
        raise AssertionError("Spark was started")

    return replace(open_engine(settings), session=no_spark)


def records(ended_at: datetime = NOW) -> list[UpkeepRecord]:
    """The records of a round of two tables."""
    return [
        compacted(table(f"silver.{name}", partition(small=12)), ended_at=ended_at)
        for name in "ab"
    ]


def test_a_round_is_recorded_once_and_read_as_it_was(engine: Engine) -> None:
    assert past_upkeep(engine.catalog, LOG.name, NOW) == PastUpkeep()
    assert record_upkeep(engine, LOG, [], "run_0") is None
    assert not engine.catalog.has(LOG.name)

    assert record_upkeep(engine, LOG, records(), "run_1") is not None
    assert record_upkeep(engine, LOG, records(), "run_1") is None

    past = past_upkeep(engine.catalog, LOG.name, NOW + timedelta(days=1))
    assert sorted(past.records, key=lambda record: record.table) == records()
    rows = engine.catalog.load(LOG.name).scan().to_arrow().to_pylist()
    assert [(row["promised_fewer_files"], row["fewer_files"]) for row in rows] == [(11, 11)] * 2


def test_what_is_older_than_a_quarter_decides_nothing(engine: Engine) -> None:
    record_upkeep(engine, LOG, records(NOW - timedelta(days=91)), "run_1")
    record_upkeep(engine, LOG, records(NOW - timedelta(days=89)), "run_2")
    assert len(past_upkeep(engine.catalog, LOG.name, NOW).records) == 2
