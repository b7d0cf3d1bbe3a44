"""The tables that each run appends to without Spark are kept by the planner, as any other, and
go on to be appended to once a run.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyiceberg.table import Table

from lakehouse.definitions import TABLES
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.upkeep.upkeep_run import Upkept, carry_out, plan_run
from lakehouse_tests.without_spark import no_spark

METRICS = TABLES["monitoring.data_quality_metrics"]
UPKEPT = Upkept(TABLES, TABLES["monitoring.upkeep_runs"], TABLES["monitoring.table_health"])
RUNS = 8
KEPT = METRICS.upkeep_policy


def append(engine: Engine, run_id: str, at: datetime) -> int | None:
    """Append the row of a run that ended at a moment, which is the same whenever it is tried."""
    row = {
        "table_name": "silver.fruits",
        "metric": "record_count",
        "value": 1.0,
        "measured_at": at,
        "run_id": run_id,
    }
    return append_once(engine, METRICS, [row], run_id, made_at="measured_at")


@pytest.mark.long
def test_what_each_run_appends_is_compacted_and_its_snapshots_expire(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, without_spark = embedded_engine, replace(embedded_engine, session=no_spark)
    begun = datetime.now(UTC)
    for number in range(RUNS):
        append(without_spark, f"run-{number}", begun)
    later = begun + KEPT.keep_snapshots_for + timedelta(days=1)

    planned = plan_run(engine, UPKEPT, [METRICS.name], named_by_user=False, now=later)
    records = carry_out(engine, UPKEPT, planned, "upkeep")

    outcomes = {record.step: record.outcome for record in records}
    assert outcomes["compact"] == outcomes["expire_snapshots"] == "done", records
    history = read_history(engine, METRICS.name)
    assert history.main.count("total-data-files") == 1
    assert len(history.snapshots) == KEPT.keep_at_least
    for number in range(RUNS):
        assert append(without_spark, f"run-{number}", begun) is None
    assert engine.catalog.load(METRICS.name).scan().to_arrow().num_rows == RUNS

    def scan(*_: object, **__: object) -> None:
        raise AssertionError("files were looked at, though the commits tell")

    monkeypatch.setattr(Table, "scan", scan)
    assert append(without_spark, "run-next", datetime.now(UTC)) is not None
