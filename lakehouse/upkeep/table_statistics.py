"""Column statistics of a table (distinct values) for join planning."""

from datetime import timedelta
from functools import partial

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped, verified
from lakehouse.iceberg.upkeep.readers_view import ReadersView
from lakehouse.iceberg.upkeep.rewrite_procedures import call_procedure
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.storage.byte_sizes import size_text
from lakehouse.tables.upkeep import in_days
from lakehouse.upkeep.upkeep_plan import Condition, PlannedStep, StepInputs, next_day

_STEP: StepName = "compute_statistics"
STATISTICS_EVERY = timedelta(days=7)
MIN_BYTES = 16 * 1024 * 1024
"""Smaller tables are broadcast in joins, independent of statistics; Spark's limit is 10 MB
(`spark.sql.autoBroadcastJoinThreshold`).
"""
MIN_CHANGED_SHARE = 0.2
"""Minimum change of the row count, as a share."""


def plan_statistics(inputs: StepInputs) -> PlannedStep:
    """Plan the statistics of a table: due if it is large, read daily, and has changed."""
    health, last = inputs.health, inputs.last_evaluated(_STEP)
    rows = health.rows - health.deleted_rows
    changed_share = abs(rows - last.rows) / max(last.rows, 1) if last else 1.0
    size = f"{size_text(health.data_bytes)} of data ({size_text(MIN_BYTES)} or more)"
    changed = f"{changed_share:.0%} more or fewer rows than at the last statistics"
    conditions = [
        Condition(
            changed if last else "no statistics were computed yet",
            changed_share >= MIN_CHANGED_SHARE,
        ),
        Condition(size, health.data_bytes >= MIN_BYTES),
    ]
    next_run = inputs.next_run(_STEP, STATISTICS_EVERY)
    if not inputs.named_by_user:
        reads = f"{inputs.reads_a_day:.3g} reads a day (1 or more)"
        conditions.append(Condition(reads, inputs.reads_a_day >= 1))
    if next_run:
        text = f"computed within the last {in_days(STATISTICS_EVERY)}"
        conditions.append(Condition(text, False))
    if all(condition.is_met for condition in conditions):
        if inputs.budget.left_bytes <= 0:
            conditions.append(Condition("the bytes of today are used up", False))
            next_run = next_day(inputs.now)
        inputs.budget.take(health.data_bytes)
    work = partial(compute_statistics, table=health.table)
    return inputs.planned(
        _STEP, conditions, work, not_before=next_run, cost_bytes=health.data_bytes
    )


def compute_statistics(engine: Engine, table: str) -> StepResult:
    """Compute the statistics of a table's columns, which reads the entire table.

    Older statistics are removed with their snapshots.
    """
    lacking = engine.catalog.iceberg.lacks(_STEP)
    if lacking:
        return skipped(table, _STEP, lacking)
    return run_step(table, _STEP, lambda: _compute(engine, table))


def _compute(engine: Engine, table: str) -> StepResult:
    with free_lock(engine, table):
        before = ReadersView.of(engine.catalog.load(table))
        call_procedure(engine, "compute_table_stats", table)
        after = ReadersView.of(engine.catalog.load(table))
    return verified(table, _STEP, {}, before.changes(after))
