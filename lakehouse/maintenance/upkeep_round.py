"""One upkeep run: measure tables, plan, execute due steps, and record results; no Dagster."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby

from lakehouse.errors import LakehouseError, TableNotFound, TableUnreadable
from lakehouse.iceberg.commit.branch import AUDIT_KEPT_FOR
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.measured_health import SnapshotPin, TableHealth
from lakehouse.iceberg.metadata.spark_errors import one_line
from lakehouse.iceberg.upkeep.compact import compact
from lakehouse.iceberg.upkeep.drop_stale_branches import drop_stale_branches
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_lost_metadata import remove_lost_metadata
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.iceberg.upkeep.rewrite_manifests import rewrite_manifests
from lakehouse.iceberg.upkeep.snapshot_pins import find_pins
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.iceberg.upkeep.table_statistics import compute_statistics
from lakehouse.maintenance.planner import BYTES_A_DAY, Known, plan_upkeep
from lakehouse.maintenance.table_reads import recent_reads
from lakehouse.maintenance.upkeep_log import past_upkeep, record_upkeep
from lakehouse.maintenance.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.maintenance.upkeep_record import UpkeepRecord, record_of
from lakehouse.tables.table import IcebergTable

OnStep = Callable[[PlannedStep, StepResult], object]


@dataclass(frozen=True)
class Upkept:
    """The tables to maintain, and planner inputs other than their metadata."""

    declared: Mapping[str, IcebergTable]
    log: IcebergTable
    """Table with the results of steps."""
    health_table: IcebergTable
    """Table with the health of all tables."""
    readers: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Incremental readers by table; their watermarks pin snapshots."""
    metrics_table: str = "monitoring.data_quality_metrics"
    """Table with the read metrics of runs."""
    bytes_a_day: int = BYTES_A_DAY

    def tables(self, engine: Engine) -> list[str]:
        """Return the existing declared tables."""
        there = engine.catalog.metadata_locations(self.declared)
        return sorted(there.keys() & self.declared.keys())


def with_cached_locations(engine: Engine, upkept: Upkept) -> Engine:
    """Return a read-only engine that lists all metadata locations once.

    With Glue: one request per 100 tables instead of one per table, and only for databases with
    declared tables.
    """
    return replace(
        engine, catalog=engine.catalog.within(upkept.declared).with_cached_locations()
    )


@dataclass(frozen=True)
class Round:
    """Measurements and the plan."""

    healths: Mapping[str, TableHealth]
    plan: UpkeepPlan
    unread: Mapping[str, str] = field(default_factory=dict)
    """Tables that could not be measured, with the reason."""


def plan_round(
    engine: Engine,
    upkept: Upkept,
    tables: Sequence[str],
    *,
    named_by_user: bool,
    now: datetime | None = None,
) -> Round:
    """Measure tables and plan their upkeep; no JVM.

    A table that cannot be read or was dropped is skipped, unless a user named it.

    :param tables: names of existing tables.
    """
    now = now or datetime.now(UTC)
    healths, unread = {}, {}
    for name in tables:
        try:
            pins = pins_of(engine, upkept, name)
            healths[name] = read_table_health(engine, name, pins=pins, now=now)
        except (TableUnreadable, TableNotFound) as error:
            if named_by_user:
                raise
            unread[name] = str(error)
    known = known_of(engine, upkept, now)
    plan = plan_upkeep(list(healths.values()), known, now, named_by_user=named_by_user)
    return Round(healths, plan, unread)


def known_of(engine: Engine, upkept: Upkept, now: datetime) -> Known:
    """Return the planner inputs other than table health; no JVM."""
    return Known(
        policies={name: table.upkeep_policy for name, table in upkept.declared.items()},
        reads=recent_reads(engine.catalog, upkept.metrics_table, now),
        past=past_upkeep(engine.catalog, upkept.log.name, now),
        bytes_a_day=upkept.bytes_a_day,
        iceberg=engine.catalog.iceberg,
    )


def pins_of(engine: Engine, upkept: Upkept, table: str) -> tuple[SnapshotPin, ...]:
    """Return the snapshot pins of a table, including its declared readers."""
    return find_pins(engine, table, upkept.readers.get(table, ()))


def carry_out(
    engine: Engine,
    upkept: Upkept,
    planned: Round,
    run_id: str,
    on_step: OnStep = lambda *_: None,
) -> list[UpkeepRecord]:
    """Execute due steps in plan order; record and return the results.

    A failed step ends the upkeep of its table only.

    :param on_step: called after each step.
    """
    records = []
    # Orphan removal checks for other tables in the same location.
    engine = engine.within(upkept.declared)
    for table, steps in groupby(planned.plan.due, key=lambda step: step.table):
        finished = []
        for step in steps:
            result = do_step(engine, step, planned.healths[table])
            finished.append((step, result, datetime.now(UTC)))
            on_step(step, result)
            if result.outcome == "failed":
                break
        location = _metadata_location(engine, planned.healths[table])
        for step, result, ended_at in finished:
            records.append(
                record_of(
                    step,
                    result,
                    planned.healths[table],
                    ended_at=ended_at,
                    metadata_location=location,
                    run_id=run_id,
                )
            )
    record_upkeep(engine, upkept.log, records, run_id)
    return records


def _metadata_location(engine: Engine, health: TableHealth) -> str:
    """Return the current metadata location; the last known one of a dropped table."""
    try:
        return engine.catalog.load(health.table).metadata_location
    except (TableUnreadable, TableNotFound):
        return health.metadata_location


def do_step(engine: Engine, step: PlannedStep, health: TableHealth) -> StepResult:
    """Execute one step; an error becomes its result and does not affect other tables.

    :param health: table health at planning time.
    """
    try:
        return _STEPS[step.step](engine, step, health)
    except Exception as error:
        kind = "" if isinstance(error, LakehouseError) else type(error).__name__
        return StepResult(step.table, step.step, "failed", one_line(error), error=kind)


def _compact(engine: Engine, step: PlannedStep, _: TableHealth) -> StepResult:
    return compact(
        engine,
        step.table,
        step.partitions,
        target_bytes=int(step.parameters["target_bytes"]),
        sort_by=json.loads(step.parameters.get("sort_by", "[]")),
        z_order=step.parameters.get("z_order") == "true",
    )


def _drop_branches(engine: Engine, step: PlannedStep, _: TableHealth) -> StepResult:
    return drop_stale_branches(
        engine, step.table, refused_before=_timestamp(step, "refused_before")
    )


def _expire(engine: Engine, step: PlannedStep, health: TableHealth) -> StepResult:
    return expire_snapshots(
        engine,
        step.table,
        older_than=_timestamp(step, "older_than"),
        keep=int(step.parameters["keep"]),
        pins=health.pins,
    )


def _rewrite_manifests(engine: Engine, step: PlannedStep, _: TableHealth) -> StepResult:
    return rewrite_manifests(engine, step.table)


def _remove_orphans(engine: Engine, step: PlannedStep, _: TableHealth) -> StepResult:
    return remove_orphans(engine, step.table, older_than=_timestamp(step, "older_than"))


def _remove_lost_metadata(engine: Engine, step: PlannedStep, _: TableHealth) -> StepResult:
    # A running commit has written its metadata.json but not yet referenced it.
    return remove_lost_metadata(
        engine, step.table, older_than=datetime.now(UTC) - AUDIT_KEPT_FOR
    )


def _compute_statistics(engine: Engine, step: PlannedStep, _: TableHealth) -> StepResult:
    return compute_statistics(engine, step.table)


_STEPS: Mapping[StepName, Callable[[Engine, PlannedStep, TableHealth], StepResult]] = {
    "compact": _compact,
    "drop_branches": _drop_branches,
    "expire_snapshots": _expire,
    "rewrite_manifests": _rewrite_manifests,
    "remove_orphans": _remove_orphans,
    "remove_lost_metadata": _remove_lost_metadata,
    "compute_statistics": _compute_statistics,
}


def _timestamp(step: PlannedStep, name: str) -> datetime:
    return datetime.fromisoformat(step.parameters[name])
