"""Which of several sick tables is kept first, on real tables: the one that is read most, or whose
upkeep saves most for each byte; and what waits for the next day's bytes.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from lakehouse.definitions import TABLES
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.read.scanned_files import READ_SHARE
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.maintenance.table_reads import READ_WINDOW_DAYS, recent_reads
from lakehouse.maintenance.upkeep_plan import PlannedStep
from lakehouse.maintenance.upkeep_round import Round, Upkept, carry_out, plan_round
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs import materialize
from lakehouse.quality.metrics.metric import Metric
from lakehouse.quality.metrics.record_metrics import MEASURED_AT, Recorder
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, Overwrite
from lakehouse_tests.iceberg.upkeep.clock import let_days_pass
from lakehouse_tests.iceberg.upkeep.tables import create

METRICS = TABLES["monitoring.data_quality_metrics"]
UPKEPT = Upkept({}, TABLES["monitoring.upkeep_runs"], TABLES["monitoring.table_health"])
COPY = IcebergTable(
    name="gold.copy",
    comment="What a run reads.",
    columns=[Column("text", "string")],
    write=Overwrite(),
)


def make_sick(engine: Engine, name: str, files: int, rows_a_file: int) -> None:
    """Make a table of small files that were written some days ago."""
    create(engine, "text string", name=name)
    chosen = random.Random(7)
    with engine.catalog.load(name).transaction() as changes:
        for _ in range(files):
            texts = [chosen.randbytes(32).hex() for _ in range(rows_a_file)]
            changes.append(pa.table({"text": texts}))
    let_days_pass(engine, 2, name)


def read_together(engine: Engine, settings: Settings, *names: str) -> None:
    """Read tables in a run of Dagster, and record what it measured."""
    inputs = {name.partition(".")[2]: latest(name) for name in names}

    @iceberg_asset(COPY, inputs=inputs)
    def copy(often: DataFrame, seldom: DataFrame) -> DataFrame:
        return often.unionAll(seldom)

    io_manager = IcebergIOManager(engine=engine, declared={})
    definitions = dg.Definitions(assets=[copy], resources={"io_manager": io_manager})
    with open_instance(settings) as instance:
        result = materialize(definitions, instance, dg.AssetSelection.all())
        assert result.success, result.messages
        assert Recorder(engine, METRICS).record(instance, result.run_id)


def record_reads_like_these(engine: Engine, times: Mapping[str, int]) -> None:
    """Record the reads that are there again, as those of so many other runs."""
    rows = []
    for row in engine.catalog.load(METRICS.name).scan().to_arrow().to_pylist():
        if row["metric"] == READ_SHARE:
            again = Metric(row["table_name"], READ_SHARE, row["value"], row[MEASURED_AT])
            rows += [again.row("others")] * times[again.table]
    append_once(engine, METRICS, rows, "others", made_at=MEASURED_AT)


def compacted(engine: Engine, upkept: Upkept, planned: Round) -> list[str]:
    """Do what is due, and return the tables that were compacted, in order."""
    tables = []

    def tell(step: PlannedStep, result: StepResult) -> None:
        assert result.outcome in ("done", "skipped"), result
        if (result.step, result.outcome) == ("compact", "done"):
            tables.append(step.table)

    carry_out(engine, upkept, planned, f"round {planned.plan.made_at}", tell)
    return tables


@pytest.mark.long
def test_equally_sick_tables_are_kept_in_the_order_of_their_reads(
    embedded_engine: Engine, settings: Settings
) -> None:
    engine, reads_a_day = embedded_engine, {"silver.seldom": 10, "silver.often": 100}
    names = ["bronze.never", "silver.seldom", "silver.often"]
    for name in names:
        make_sick(engine, name, files=6, rows_a_file=1)
    read_together(engine, settings, "silver.often", "silver.seldom")
    record_reads_like_these(
        engine, {name: number * READ_WINDOW_DAYS - 1 for name, number in reads_a_day.items()}
    )

    reads = recent_reads(engine.catalog, METRICS.name, datetime.now(UTC))
    planned = plan_round(engine, UPKEPT, names, named_by_user=False)

    assert reads.by_table == pytest.approx(reads_a_day)
    assert compacted(engine, UPKEPT, planned) == names[::-1]


@pytest.mark.long
def test_of_three_sick_tables_and_bytes_for_one_the_most_valuable_goes_first(
    embedded_engine: Engine,
) -> None:
    engine, names = embedded_engine, ["silver.many", "silver.some", "silver.few"]
    for name, files in zip(names, (24, 12, 6), strict=True):
        make_sick(engine, name, files, rows_a_file=1200 // files)
    order, today = [], datetime.now(UTC)
    at_once = plan_round(engine, UPKEPT, names, named_by_user=False, now=today)
    costs = [step.cost_bytes for step in at_once.plan.due if step.step == "compact"]
    upkept = replace(UPKEPT, bytes_a_day=max(costs))

    for days in range(4):
        now = today + timedelta(days=days)
        planned = plan_round(engine, upkept, names, named_by_user=False, now=now)
        order.append(compacted(engine, upkept, planned))

    assert len(costs) == 3
    assert order == [["silver.many"], ["silver.some"], ["silver.few"], []]
