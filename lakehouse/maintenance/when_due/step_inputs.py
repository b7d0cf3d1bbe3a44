"""State of a table for the due conditions of its steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.daily_bytes import DailyBytes
from lakehouse.maintenance.past_upkeep import PastUpkeep
from lakehouse.maintenance.upkeep_plan import Condition, Estimate, Gain, PlannedStep
from lakehouse.maintenance.upkeep_record import UpkeepRecord
from lakehouse.tables.upkeep import UpkeepPolicy


@dataclass(frozen=True)
class StepInputs:
    """State of a table for the due conditions of its steps.

    `named_by_user`: a user named this table; intervals and budget do not apply. `compacts`: its
    compaction is due in the same run. `budget`: remaining bytes of the day, reduced by planning.
    """

    health: TableHealth
    policy: UpkeepPolicy
    past: PastUpkeep
    now: datetime
    reads_a_day: float
    named_by_user: bool
    compacts: bool
    budget: DailyBytes

    def last_evaluated(self, step: StepName) -> UpkeepRecord | None:
        """Return the newest record of a step that evaluated the table."""
        return self.past.last_evaluated(self.health.table, step)

    def is_unchanged_since(self, record: UpkeepRecord) -> bool:
        """Whether the table has no commits since an upkeep run."""
        return record.metadata_location == self.health.metadata_location

    def rhythm(self, step: StepName, every: timedelta) -> datetime | None:
        """Return when a step can run next if its interval has not elapsed; else None."""
        last = self.last_evaluated(step)
        if last is None or self.named_by_user or self.now >= last.ended_at + every:
            return None
        return last.ended_at + every


def planned_step(
    inputs: StepInputs,
    step: StepName,
    conditions: Sequence[Condition],
    *,
    is_due: bool | None = None,
    gain: Gain | None = None,
    cost_bytes: int = 0,
    not_before: datetime | None = None,
    parameters: dict[str, str] | None = None,
) -> PlannedStep:
    """Return a step that is due if all conditions are met, or as `is_due` states."""
    if is_due is None:
        is_due = all(condition.is_met for condition in conditions)
    deciding = [condition.text for condition in conditions if condition.is_met is is_due]
    return PlannedStep(
        table=inputs.health.table,
        step=step,
        is_due=is_due,
        reason=deciding[0],
        conditions=tuple(conditions),
        gain=gain if gain and is_due else Gain(),
        cost_bytes=cost_bytes if is_due else 0,
        uncorrected=Estimate(cost_bytes=cost_bytes if is_due else 0),
        not_before=None if is_due else not_before,
        parameters=parameters or {},
    )
