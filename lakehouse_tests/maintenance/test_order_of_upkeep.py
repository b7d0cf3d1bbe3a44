"""Which of several tables is compacted first, and what waits for the bytes of the next day."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lakehouse.definitions import TABLES
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.scanned_files import READ_SHARE
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.maintenance.table_reads import READ_WINDOW_DAYS
from lakehouse.maintenance.upkeep_plan import UpkeepPlan
from lakehouse.maintenance.upkeep_run import Upkept, carry_out, plan_run
from lakehouse.quality.metrics.metric import Metric
from lakehouse.quality.metrics.record_metrics import MEASURED_AT
from lakehouse_tests.iceberg.upkeep.clock import let_days_pass
from lakehouse_tests.iceberg.upkeep.tables import create

METRICS = TABLES["monitoring.data_quality_metrics"]
UPKEPT = Upkept({}, TABLES["monitoring.upkeep_runs"], TABLES["monitoring.table_health"])


def make_sick(engine: Engine, name: str, files: int, rows_a_file: int) -> None:
    """Make a table of small files that were written some days ago."""
    create(engine, "text string", name=name)
    chosen = random.Random(7)
    with engine.catalog.load(name).transaction() as changes:
        for _ in range(files):
            texts = [chosen.randbytes(32).hex() for _ in range(rows_a_file)]
            changes.append(pa.table({"text": texts}))
    let_days_pass(engine, 2, name)


def compacted(engine: Engine, upkept: Upkept, plan: UpkeepPlan, run_id: str) -> list[str]:
    """Do what is due, and return the tables that were compacted, in order."""
    records = carry_out(engine, upkept, plan, run_id)
    assert {record.outcome for record in records} <= {"done", "skipped"}, records
    return [
        record.table
        for record in records
        if (record.step, record.outcome) == ("compact", "done")
    ]


@pytest.mark.long
def test_equally_sick_tables_are_compacted_in_the_order_of_their_reads(
    embedded_engine: Engine,
) -> None:
    engine = embedded_engine
    reads = {"bronze.never": 0, "silver.seldom": 10, "silver.often": 100}
    rows = []
    for name, reads_a_day in reads.items():
        make_sick(engine, name, files=6, rows_a_file=1)
        read = Metric(name, READ_SHARE, 1.0, datetime.now(UTC), 1)
        rows += [read.row("reads")] * (reads_a_day * READ_WINDOW_DAYS)
    append_once(engine, METRICS, rows, "reads", made_at=MEASURED_AT)

    plan = plan_run(engine, UPKEPT, list(reads), named_by_user=False)

    assert compacted(engine, UPKEPT, plan, "run") == [*reads][::-1]


@pytest.mark.long
def test_the_most_valuable_compaction_goes_first_within_the_bytes_of_a_day(
    embedded_engine: Engine,
) -> None:
    engine, names = embedded_engine, ["silver.many", "silver.some", "silver.few"]
    for name, files in zip(names, (24, 12, 6), strict=True):
        make_sick(engine, name, files, rows_a_file=1200 // files)
    order, today = [], datetime.now(UTC)
    at_once = plan_run(engine, UPKEPT, names, named_by_user=False, now=today)
    costs = [step.cost_bytes for step in at_once.due if step.step == "compact"]
    # Each compaction reads all of the day's bytes, whatever it writes.
    upkept = replace(UPKEPT, bytes_a_day=min(costs) // 2)

    for days in range(4):
        now = today + timedelta(days=days)
        plan = plan_run(engine, upkept, names, named_by_user=False, now=now)
        order.append(compacted(engine, upkept, plan, f"run {days}"))

    assert len(costs) == 3
    assert order == [["silver.many"], ["silver.some"], ["silver.few"], []]
