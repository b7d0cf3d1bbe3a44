"""How far the runs of a call are is told by their events."""

import dagster as dg
import pytest

from lakehouse.orchestration.dagster_internals import asset_graph, job_of_all_assets
from lakehouse.orchestration.metadata_keys import WriteMetadata
from lakehouse.orchestration.partitions.partition_bounds import range_tags
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.run_progress import (
    RunProgress,
    TableProgress,
    tables_of_steps,
)

pytestmark = pytest.mark.unit

DAYS = dg.DailyPartitionsDefinition("2026-03-01", end_date="2026-03-05")
KEYS = DAYS.get_partition_keys()
ROWS = WriteMetadata(nr_rows=50).to_metadata()


@dg.asset(key=["silver", "days"], partitions_def=DAYS)
def days() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata=ROWS)


@dg.asset(key=["gold", "all"], deps=[days])
def everything() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata=ROWS)


def told_of(*runs: PendingRun) -> list[TableProgress]:
    definitions = dg.Definitions([days, everything])
    reported: list[TableProgress] = []
    progress = RunProgress(
        tables_of_steps(asset_graph(definitions)),
        reported.append,
    )
    progress.begin_stage(runs)
    job = job_of_all_assets(definitions)
    for run in runs:
        assert run.partitions is not None
        for event in job.execute_in_process(tags=range_tags(*run.partitions)).all_events:
            progress.on_event(event)
    return reported


def test_each_table_is_told_when_it_is_begun_and_done() -> None:
    tables = ("silver.days", "gold.all")
    halves = [
        PendingRun.of_partitions(tables, part, KEYS, partitioned=["silver.days"])
        for part in (KEYS[:2], KEYS[2:])
    ]
    reported = told_of(*halves)
    assert [(one.table, one.done, one.partitions, one.rows) for one in reported] == [
        ("silver.days", 0, 4, 0),
        ("silver.days", 2, 4, 50),
        ("gold.all", 0, 0, 0),
        ("gold.all", 0, 0, 50),
        ("silver.days", 2, 4, 50),
        ("silver.days", 4, 4, 100),
        ("gold.all", 0, 0, 50),
        ("gold.all", 0, 0, 100),
    ]
