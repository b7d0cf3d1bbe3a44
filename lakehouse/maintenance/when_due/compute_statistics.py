"""Due conditions of statistics: a large, read table that has changed."""

from datetime import timedelta

from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.daily_bytes import next_day, size_text
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep
from lakehouse.maintenance.upkeep_record import live_rows
from lakehouse.maintenance.when_due.step_inputs import StepInputs, planned_step
from lakehouse.tables.upkeep import in_days

_STEP: StepName = "compute_statistics"
STATISTICS_EVERY = timedelta(days=7)
STATISTICS_BYTES = 16 * 1024 * 1024
"""Smaller tables are broadcast in joins, independent of statistics; Spark's limit is 10 MB
(`spark.sql.autoBroadcastJoinThreshold`).
"""
CHANGED_SHARE = 0.2
"""Minimum change of the row count, as a share."""


def plan_statistics(inputs: StepInputs) -> PlannedStep:
    """Plan the statistics of a table."""
    health = inputs.health
    rows, last = live_rows(health), inputs.last_evaluated(_STEP)
    changed = 1.0 if last is None else abs(rows - last.rows) / max(last.rows, 1)
    conditions = [
        Condition(
            f"{changed:.0%} more or fewer rows than at the last statistics"
            if last
            else "no statistics were computed yet",
            changed >= CHANGED_SHARE,
        ),
        Condition(
            f"{size_text(health.data_bytes)} of data ({size_text(STATISTICS_BYTES)} or more)",
            health.data_bytes >= STATISTICS_BYTES,
        ),
    ]
    rhythm = inputs.rhythm(_STEP, STATISTICS_EVERY)
    not_before = rhythm
    if not inputs.named_by_user:
        conditions.append(
            Condition(
                f"{inputs.reads_a_day:.3g} reads a day (1 or more)", inputs.reads_a_day >= 1
            )
        )
        if rhythm:
            conditions.append(
                Condition(f"computed within the last {in_days(STATISTICS_EVERY)}", False)
            )
        are_met = all(condition.is_met for condition in conditions)
        if are_met and not inputs.budget.take(health.data_bytes):
            conditions.append(Condition("more than is left of today's bytes", False))
            not_before = next_day(inputs.now)
    return planned_step(
        inputs,
        _STEP,
        conditions,
        cost_bytes=health.data_bytes,
        not_before=not_before,
    )
