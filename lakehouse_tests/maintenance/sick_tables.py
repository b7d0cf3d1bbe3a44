"""What the tests of the planner share: tables as sick as a test says, and upkeep that works as
it promised.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from lakehouse.iceberg.commit.branch import begun_at, refused_branch
from lakehouse.iceberg.metadata.measured_health import (
    PartitionHealth,
    PartitionKey,
    RefHealth,
    TableHealth,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepOutcome, StepResult
from lakehouse.maintenance.past_upkeep import PastUpkeep
from lakehouse.maintenance.planner import Known, plan_upkeep
from lakehouse.maintenance.table_reads import TableReads
from lakehouse.maintenance.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.maintenance.upkeep_record import UpkeepRecord, record_of

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
MB = 1024 * 1024
TARGET = 128 * MB


def day(number: int) -> PartitionKey:
    """The key of a partition of one day."""
    return PartitionKey(0, (("day", date(2026, 1, 1) + timedelta(days=number)),))


def partition(number: int = 0, *, small: int = 0, **parts: Any) -> PartitionHealth:
    """A partition of small files of 1 MB each, at rest since yesterday, unless a test says
    otherwise.
    """
    usual: dict[str, Any] = {
        "key": day(number),
        "rows": 1000 * small,
        "data_files": small,
        "data_bytes": small * MB,
        "small_files": small,
        "small_bytes": small * MB,
        "newest_file_at": NOW - timedelta(days=2),
        "files_digest": f"{number} {small}",
    }
    return PartitionHealth(**usual | parts)


def table(name: str = "silver.t", *partitions: PartitionHealth, **parts: Any) -> TableHealth:
    """The health of a table that has nothing to be cleared away but its partitions."""
    usual: dict[str, Any] = {
        "table": name,
        "measured_at": NOW,
        "metadata_location": f"{name}-1.json",
        "snapshot_id": 1,
        "format_version": 2,
        "default_spec_id": 0,
        "target_bytes": TARGET,
        "partitions": partitions,
        "snapshot_times": (NOW - timedelta(days=2),),
        "manifests": 1,
        "manifest_bytes": 10_000,
        "lost_metadata_files": (),
    }
    return TableHealth(**usual | parts)


def step_of(plan: UpkeepPlan, step: StepName, name: str = "silver.t") -> PlannedStep:
    """The step of a table in a plan."""
    steps = {(planned.table, planned.step): planned for planned in plan.steps}
    return steps[name, step]


def compaction(
    *healths: TableHealth,
    by_name: bool = False,
    now: datetime = NOW,
    name: str = "silver.t",
    **known: Any,
) -> PlannedStep:
    """The planned compaction of a table, often read unless a test says otherwise."""
    plan = plan_upkeep(healths, Known(**{"reads": READ} | known), now, named_by_user=by_name)
    return step_of(plan, "compact", name)


READ = TableReads({"silver.t": 100.0})
"""Of a table that is read often enough for any rewrite to pay for itself."""


def joined(health: TableHealth, step: PlannedStep, location: str) -> TableHealth:
    """The health of a table after a step that did all that was promised."""
    if step.step == "compact":
        done = tuple(
            _whole(before, health.default_spec_id) if before.key in step.partitions else before
            for before in health.partitions
        )
        health = replace(health, partitions=done)
    elif step.step == "expire_snapshots":
        older_than = datetime.fromisoformat(step.parameters["older_than"])
        keep = int(step.parameters["keep"])
        times = health.snapshot_times
        pinned = {pin.committed_at for pin in health.pins}
        kept = [
            at
            for number, at in enumerate(times)
            if at >= older_than or number >= len(times) - keep or at in pinned
        ]
        health = replace(health, snapshot_times=tuple(kept))
    elif step.step == "rewrite_manifests":
        health = replace(health, manifests=1)
    elif step.step == "drop_branches":
        before = datetime.fromisoformat(step.parameters["refused_before"])
        stale = {f"branch {ref.name}" for ref in health.refs if begun(ref) < before}
        refs = tuple(ref for ref in health.refs if f"branch {ref.name}" not in stale)
        pins = tuple(pin for pin in health.pins if pin.owner not in stale)
        health = replace(health, refs=refs, pins=pins)
    elif step.step == "remove_lost_metadata":
        health = replace(health, lost_metadata_files=())
    return replace(health, metadata_location=location)


def begun(ref: RefHealth) -> datetime:
    """When the write of a branch began; long from now where it is of none."""
    return begun_at(ref.name) or datetime.max.replace(tzinfo=UTC)


def refused(days: float) -> str:
    """The name of a branch that was refused some days ago."""
    return refused_branch(write_id(days))


def write_id(days: float) -> str:
    """The id of a write that began some days ago."""
    return f"{int((NOW - timedelta(days=days)).timestamp() * 1000):012x}{'0' * 20}"


def _whole(before: PartitionHealth, spec_id: int) -> PartitionHealth:
    files = max(1, -(-before.data_bytes // TARGET))
    return replace(
        before,
        key=replace(before.key, spec_id=spec_id),
        rows=before.rows - before.deleted_rows,
        data_files=files,
        small_files=min(1, files),
        small_bytes=before.data_bytes % TARGET,
        delete_files=0,
        delete_bytes=0,
        deleted_rows=0,
        dangling_delete_files=0,
        files_digest=f"{before.files_digest} joined",
    )


def carried_out(
    plan: UpkeepPlan, healths: Sequence[TableHealth], now: datetime
) -> tuple[list[TableHealth], list[UpkeepRecord]]:
    """The health of tables after all that was due was done as promised, and its records."""
    after = {health.table: health for health in healths}
    for step in plan.due:
        after[step.table] = joined(
            after[step.table], step, f"{step.table}-{now.timestamp()}.json"
        )
    before = {health.table: health for health in healths}
    records = [
        record_of(
            step,
            StepResult(step.table, step.step, "done", step_metrics=step_metrics(step)),
            before[step.table],
            ended_at=now,
            metadata_location=after[step.table].metadata_location,
        )
        for step in plan.due
    ]
    return list(after.values()), records


def step_metrics(step: PlannedStep) -> dict[str, float]:
    """The figures of a step that came to what was promised."""
    if step.step != "compact":
        return {}
    return {
        "files_before": step.gain.fewer_files,
        "files_after": 0,
        "rewritten_bytes": step.cost_bytes // 2,
        "added_bytes": step.cost_bytes - step.cost_bytes // 2,
    }


def compacted(
    health: TableHealth,
    *,
    ended_at: datetime = NOW - timedelta(days=1),
    outcome: StepOutcome = "done",
    **came_to: float,
) -> UpkeepRecord:
    """The record of a compaction of all that a table has, that came to some figures."""
    step = compaction(health, by_name=True, name=health.table)
    return record_of(
        step,
        StepResult(
            health.table, "compact", outcome, step_metrics=came_to or step_metrics(step)
        ),
        health,
        ended_at=ended_at,
        metadata_location="another.json",
    )


def past(*records: UpkeepRecord) -> PastUpkeep:
    """Earlier upkeep."""
    return PastUpkeep(records)
