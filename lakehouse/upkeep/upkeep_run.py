"""One upkeep run: measure tables, plan, execute due steps, and record results; no Dagster."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby

from lakehouse.errors import LakehouseError, TableNotFound, TableUnreadable
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.spark_errors import one_line
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.health_metrics import SnapshotPin, TableHealth
from lakehouse.iceberg.upkeep.expire_snapshots import find_pins
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.tables.table import IcebergTable
from lakehouse.upkeep.planner import BYTES_A_DAY, Known, plan_upkeep
from lakehouse.upkeep.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.upkeep.upkeep_records import UpkeepRecord, past_upkeep, record_upkeep

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
    bytes_a_day: int = BYTES_A_DAY

    def tables(self, engine: Engine) -> list[str]:
        """Return the existing declared tables."""
        existing = engine.catalog.metadata_locations(self.declared)
        return sorted(existing.keys() & self.declared.keys())


def with_cached_locations(engine: Engine, upkept: Upkept) -> Engine:
    """Return a read-only engine that lists all metadata locations once.

    With Glue: one request per 100 tables instead of one per table, and only for databases with
    declared tables.
    """
    catalog = engine.catalog.within(upkept.declared).with_cached_locations()
    return replace(engine, catalog=catalog)


def plan_run(
    engine: Engine,
    upkept: Upkept,
    tables: Sequence[str],
    *,
    named_by_user: bool,
    now: datetime | None = None,
) -> UpkeepPlan:
    """Measure tables and plan their upkeep; no JVM.

    A table that cannot be read or was dropped is skipped, unless a user named it.

    :param tables: names of existing tables.
    """
    now = now or datetime.now(UTC)
    healths, unread = [], {}
    for name in tables:
        try:
            pins = pins_of(engine, upkept, name)
            healths.append(read_table_health(engine, name, pins=pins, now=now))
        except (TableUnreadable, TableNotFound) as error:
            if named_by_user:
                raise
            unread[name] = str(error)
    plan = plan_upkeep(healths, known_of(engine, upkept, now), now, named_by_user=named_by_user)
    return replace(plan, unread=unread)


def known_of(engine: Engine, upkept: Upkept, now: datetime) -> Known:
    """Return the planner inputs other than table health; no JVM."""
    return Known(
        policies={name: table.upkeep_policy for name, table in upkept.declared.items()},
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
    plan: UpkeepPlan,
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
    for table, steps in groupby(plan.due, key=lambda step: step.table):
        health = plan.healths[table]
        of_table = []
        for step in steps:
            result = do_step(engine, step)
            of_table.append(_record(step, result, health, run_id))
            on_step(step, result)
            if result.outcome == "failed":
                break
        # With an earlier location, the next check would treat the run's own commits as a change.
        location = _metadata_location(engine, health)
        records += [replace(record, metadata_location=location) for record in of_table]
    record_upkeep(engine, upkept.log, records, run_id)
    return records


def do_step(engine: Engine, step: PlannedStep) -> StepResult:
    """Execute one due step; an error becomes its result and does not affect other tables."""
    assert step.work is not None
    try:
        return step.work(engine)
    except Exception as error:
        kind = "" if isinstance(error, LakehouseError) else type(error).__name__
        return StepResult(step.table, step.step, "failed", one_line(error), error=kind)


def _record(
    step: PlannedStep, result: StepResult, health: TableHealth, run_id: str
) -> UpkeepRecord:
    return UpkeepRecord(
        table=step.table,
        step=step.step,
        outcome=result.outcome,
        ended_at=datetime.now(UTC),
        metadata_location=health.metadata_location,
        run_id=run_id,
        reason=result.reason,
        promised_fewer_files=step.fewer_files,
        promised_cost_bytes=step.cost_bytes,
        step_metrics=dict(result.step_metrics),
        had_conflict=result.had_conflict,
    )


def _metadata_location(engine: Engine, health: TableHealth) -> str:
    """Return the current metadata location; the last known one of a dropped table."""
    try:
        return engine.catalog.load(health.table).metadata_location
    except (TableUnreadable, TableNotFound):
        return health.metadata_location
