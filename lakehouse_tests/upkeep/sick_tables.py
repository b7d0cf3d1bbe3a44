"""Tables in any state of health for tests of the planner, and upkeep that does what it planned."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from lakehouse.iceberg.commit.branch import begun_at, blocked_branch
from lakehouse.iceberg.metadata.health_metrics import (
    PartitionHealth,
    PartitionKey,
    RefHealth,
    TableHealth,
)
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.tables.upkeep import UpkeepPolicy
from lakehouse.upkeep.planner import Known, plan_upkeep
from lakehouse.upkeep.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.upkeep.upkeep_records import PastUpkeep, UpkeepRecord

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
MB = 1024 * 1024
TARGET = 128 * MB


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def day(number: int) -> PartitionKey:
    """The key of a partition of one day."""
    return PartitionKey(0, (("day", date(2026, 1, 1) + timedelta(days=number)),))


def partition(number: int = 0, *, small: int = 0, **parts: Any) -> PartitionHealth:
    """A partition of small files of 1 MB each, not written to for two days by default."""
    usual: dict[str, Any] = {
        "key": day(number),
        "rows": 1000 * small,
        "data_files": small,
        "data_bytes": small * MB,
        "small_files": small,
        "small_bytes": small * MB,
        "newest_file_at": days_ago(2),
    }
    return PartitionHealth(**usual | parts)


def table(name: str = "silver.t", *partitions: PartitionHealth, **parts: Any) -> TableHealth:
    """The health of a table that only needs upkeep of its partitions."""
    usual: dict[str, Any] = {
        "table": name,
        "measured_at": NOW,
        "metadata_location": f"{name}-1.json",
        "snapshot_id": 1,
        "format_version": 2,
        "default_spec_id": 0,
        "target_bytes": TARGET,
        "partitions": partitions,
        "snapshot_times": (days_ago(2),),
        "manifests": 1,
        "manifest_bytes": 10_000,
    }
    return TableHealth(**usual | parts)


def step_of(plan: UpkeepPlan, step: StepName, name: str = "silver.t") -> PlannedStep:
    """The step of a table in a plan."""
    steps = {(planned.table, planned.step): planned for planned in plan.steps}
    return steps[name, step]


def planned(
    health: TableHealth,
    step: StepName,
    *records: UpkeepRecord,
    by_name: bool = False,
    now: datetime = NOW,
    bytes_a_day: int = 10**12,
    **policy: Any,
) -> PlannedStep:
    """A step of the plan of one table."""
    known = Known(
        policies={health.table: UpkeepPolicy(**policy)},
        past=PastUpkeep(records),
        bytes_a_day=bytes_a_day,
    )
    plan = plan_upkeep([health], known, now, named_by_user=by_name)
    return step_of(plan, step, health.table)


def record(step: StepName, health: TableHealth, days: float = 0, **parts: Any) -> UpkeepRecord:
    """The record of a step that was done some days ago, and left the table in this state."""
    usual: dict[str, Any] = {
        "table": health.table,
        "step": step,
        "outcome": "done",
        "ended_at": days_ago(days),
        "metadata_location": health.metadata_location,
    }
    return UpkeepRecord(**usual | parts)


def refused(days: float) -> str:
    """The name of a branch that was refused some days ago."""
    return blocked_branch(write_id(days))


def write_id(days: float) -> str:
    """The id of a write that began some days ago."""
    return f"{int(days_ago(days).timestamp() * 1000):012x}{'0' * 20}"


def after_step(health: TableHealth, step: PlannedStep) -> TableHealth:
    """The health of a table after a step that did all that was planned."""
    work: Any = step.work
    if step.step == "compact":
        merged = tuple(map(_merged, health.partitions))
        return replace(health, partitions=merged)
    if step.step == "expire_snapshots":
        times, keep = health.snapshot_times, work.keywords["keep"]
        pinned = {pin.committed_at for pin in health.pins}
        kept = [
            at
            for number, at in enumerate(times)
            if at >= work.keywords["older_than"] or number >= len(times) - keep or at in pinned
        ]
        return replace(health, snapshot_times=tuple(kept))
    if step.step == "rewrite_manifests":
        return replace(health, manifests=1)
    if step.step == "drop_branches":
        before = work.keywords["blocked_before"]
        refs = tuple(ref for ref in health.refs if _begun(ref) >= before)
        owners = {f"branch {ref.name}" for ref in health.refs if ref not in refs}
        pins = tuple(pin for pin in health.pins if pin.owner not in owners)
        return replace(health, refs=refs, pins=pins)
    return health


def _begun(ref: RefHealth) -> datetime:
    return begun_at(ref.name) or datetime.max.replace(tzinfo=UTC)


def _merged(before: PartitionHealth) -> PartitionHealth:
    files = max(1, -(-before.data_bytes // TARGET))
    return replace(
        before,
        rows=before.rows - before.deleted_rows,
        data_files=files,
        small_files=min(1, files),
        small_bytes=before.data_bytes % TARGET,
        delete_files=0,
        delete_bytes=0,
        deleted_rows=0,
        dangling_delete_files=0,
    )


def carried_out(
    plan: UpkeepPlan, healths: Sequence[TableHealth], now: datetime
) -> tuple[list[TableHealth], list[UpkeepRecord]]:
    """The health of tables after all that was due was done as planned, and its records."""
    after = {health.table: health for health in healths}
    for step in plan.due:
        changed = after_step(after[step.table], step)
        location = f"{step.table}-{now.timestamp()}.json"
        after[step.table] = replace(changed, metadata_location=location)
    records = [
        record(step.step, after[step.table], ended_at=now, promised_cost_bytes=step.cost_bytes)
        for step in plan.due
    ]
    return list(after.values()), records
