"""Plan of a table's evolution to its declaration, and its execution."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

from lakehouse.errors import EvolutionRefused, PendingChanges
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.retry import REF_ATTEMPTS, Failure, classify, pause
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.evolve.creation import NEWEST_FORMAT, create_table
from lakehouse.iceberg.evolve.format_refusals import format_refusals
from lakehouse.iceberg.evolve.layout_changes import layout_changes, upgrade_format
from lakehouse.iceberg.evolve.matched_columns import renamed_columns
from lakehouse.iceberg.evolve.plan_warnings import warnings
from lakehouse.iceberg.evolve.schema_changes import schema_changes
from lakehouse.iceberg.evolve.schema_steps import Order, Refusal, Step
from lakehouse.iceberg.metadata.code_versions import computed_parts, recorded_code_version
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import UNCHANGED_PROPERTY, History, read_history
from lakehouse.iceberg.metadata.iceberg_release import PINNED, IcebergRelease
from lakehouse.iceberg.metadata.table_state import TableState, read_state
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class Plan:
    """The steps that bring one table to its declaration, in order."""

    table: str
    steps: tuple[Step, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the table matches its declaration."""
        return not self.steps and not self.refusals

    @property
    def is_creation(self) -> bool:
        """Whether the table does not exist yet."""
        return any(step.order is Order.CREATE for step in self.steps)

    @property
    def automatic(self) -> tuple[Step, ...]:
        """The steps that run before a write."""
        return tuple(step for step in self.steps if step.automatic)

    @property
    def waiting(self) -> tuple[Step, ...]:
        """The steps that wait for `lakehouse apply`."""
        return tuple(step for step in self.steps if not step.automatic)

    def describe(self) -> list[str]:
        """Return one line for each step, refusal and warning."""
        return [
            *(step.description for step in self.automatic),
            *(f"{step.description} (by lakehouse apply)" for step in self.waiting),
            *(f"refused: {refusal}" for refusal in self.refusals),
            *(f"warning: {warning}" for warning in self.warnings),
        ]


def plan(
    table: IcebergTable,
    state: TableState | None,
    iceberg: IcebergRelease = PINNED,
) -> Plan:
    """Compare a declaration with the table's state, which is None if the table does not exist.

    :param iceberg: the release that writes the table.
    """
    refused = tuple(format_refusals(table, state, iceberg))
    if state is None:
        created = tuple(_creation(table))
        return Plan(table.name, created, refused, tuple(warnings(table, state, iceberg)))
    changes = [
        *refused,
        *schema_changes(table, state),
        *layout_changes(table, state, renamed_columns(table, state)),
    ]
    steps = [change for change in changes if isinstance(change, Step)]
    if not state.schema_is_committed:
        description = "commit the current schema, so that time travel shows it"
        steps.append(Step(Order.COMMIT, description))
    return Plan(
        table=table.name,
        steps=tuple(
            _without_waiting(step, state) for step in sorted(steps, key=lambda step: step.order)
        ),
        refusals=tuple(change for change in changes if isinstance(change, Refusal)),
        warnings=tuple(warnings(table, state, iceberg)),
    )


def ensure(
    engine: Engine,
    table: IcebergTable,
    run_id: str = "",
    *,
    before_creation: Callable[[], None] = lambda: None,
) -> Plan:
    """Create the table, or apply the changes that are safe for readers; runs in the table's
    lock.

    Uses no Spark if nothing is to be done, or to create a table of format 1 or 2.

    :param before_creation: called before the table is created; an error prevents the creation.
    :returns: the plan; steps that wait without blocking writes are not applied.
    :raises EvolutionRefused: if a declared change would lose data or break readers.
    :raises PendingChanges: if a rename or a drop waits for `lakehouse apply`.
    """
    return _carry_out(
        engine, table, run_id, with_waiting=False, before_creation=before_creation
    )


def apply(engine: Engine, table: IcebergTable, run_id: str = "") -> Plan:
    """Apply all declared changes, including those that need a user's confirmation; takes the
    table's lock.

    :returns: the plan, fully applied.
    :raises EvolutionRefused: if a declared change would lose data or break readers; nothing is
        changed.
    """
    planned = plan_now(engine, table)
    if planned.is_empty:
        return planned
    with table_lock(engine, table.name):
        done = _carry_out(engine, table, run_id, with_waiting=True)
    return replace(done, warnings=planned.warnings)


def plan_now(engine: Engine, table: IcebergTable) -> Plan:
    """Plan from the table's current metadata; starts no JVM."""
    return plan(table, read_state(engine, table.name), engine.catalog.iceberg)


def _creation(table: IcebergTable) -> list[Step]:
    spec = f", partitioned by {', '.join(table.partitioning)}" if table.partitioning else ""
    order = f", sorted by {', '.join(map(str, table.sort_fields))}" if table.sort_fields else ""
    created = f"create the table with {len(table.columns)} columns{spec}{order}"
    steps = [Step(Order.CREATE, created)]
    if table.format_version > NEWEST_FORMAT:
        upgrade = upgrade_format(NEWEST_FORMAT, table.format_version)
        steps.append(replace(upgrade, automatic=True))
    return steps


def _without_waiting(step: Step, state: TableState) -> Step:
    """Make a step automatic if the table has no files, so that it affects no reader."""
    return replace(step, automatic=True) if state.is_empty and not step.blocks_writes else step


def _chosen_steps(planned: Plan, *, with_waiting: bool) -> tuple[Step, ...]:
    if planned.refusals:
        raise EvolutionRefused("\n".join(map(str, planned.refusals)))
    if with_waiting:
        return planned.steps
    blocking = [step.description for step in planned.waiting if step.blocks_writes]
    if blocking:
        raise PendingChanges(
            f"{planned.table} does not match its declaration: {'; '.join(blocking)}.",
            next_step=(
                "Show all changes with `lakehouse plan`, and apply them with `lakehouse apply`."
            ),
        )
    return planned.automatic


def _carry_out(
    engine: Engine,
    table: IcebergTable,
    run_id: str,
    *,
    with_waiting: bool,
    before_creation: Callable[[], None] = lambda: None,
) -> Plan:
    """Run the chosen steps; after a failure, plan again from the table's new state and
    continue.

    Steps that another process made, or whose response was lost, are therefore not repeated.
    """
    first = planned = plan_now(engine, table)
    if first.is_creation:
        before_creation()
    for attempt in range(REF_ATTEMPTS):
        steps = _chosen_steps(planned, with_waiting=with_waiting)
        if not steps:
            return first
        try:
            _run(engine, table, steps, run_id)
            return first
        except Exception as error:
            planned, failed = plan_now(engine, table), planned
            if attempt == REF_ATTEMPTS - 1 or (
                planned == failed and classify(error) is Failure.OTHER
            ):
                error.add_note(
                    f"{table.name} was being changed:"
                    f" {'; '.join(step.description for step in steps)}."
                )
                raise
        pause(attempt)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _run(engine: Engine, table: IcebergTable, steps: tuple[Step, ...], run_id: str) -> None:
    if steps[0].order is Order.CREATE:
        create_table(engine, table)
    if steps[-1].order is Order.CREATE:
        return
    for step in steps:
        for statement in step.statements(engine.catalog, table.name):
            engine.sql(statement)
    state = read_state(engine, table.name)
    if state is not None and not state.schema_is_committed:
        _commit_schema(engine, table, run_id)


def _commit_schema(engine: Engine, table: IcebergTable, run_id: str) -> None:
    history = read_history(engine, table.name)
    properties = CommitProperties(
        kind="evolution",
        write_id=uuid4().hex,
        run_id=run_id,
        inputs=_recorded_watermarks(history),
        declaration=table.declaration_hash,
        computed_by=computed_parts(history) if recorded_code_version(history) else (),
    )
    commit_without_rows(engine, table.name, properties.to_summary())


def _recorded_watermarks(history: History) -> dict[str, int]:
    """Return the watermarks recorded for the current snapshot, which a new commit would
    invalidate.
    """
    recorded = json.loads(history.properties.get(UNCHANGED_PROPERTY, "{}")).get("inputs", {})
    watermarks = {source: history.watermark(source) for source in recorded}
    return {source: mark for source, mark in watermarks.items() if mark is not None}
