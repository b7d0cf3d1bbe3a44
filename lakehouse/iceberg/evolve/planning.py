"""Plan of a table's evolution to its declaration, and its execution."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.errors import EvolutionRefused, PendingChanges
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.iceberg_release import PINNED, IcebergRelease
from lakehouse.iceberg.commit.commit_retries import REF_ATTEMPTS, Failure, classify, pause
from lakehouse.iceberg.commit.kept_watermarks import carried_properties
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.evolve.layout_changes import (
    created_properties,
    layout_changes,
    upgrade_format,
)
from lakehouse.iceberg.evolve.matched_columns import renamed_columns
from lakehouse.iceberg.evolve.row_level_mode import VECTORS_SINCE
from lakehouse.iceberg.evolve.schema_changes import schema_changes
from lakehouse.iceberg.evolve.schema_steps import DeniedChange, Order, Step
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.metadata.table_locations import create_namespace, new_location
from lakehouse.iceberg.metadata.table_state import TableState, read_state
from lakehouse.iceberg.metadata.type_conversion import iceberg_type
from lakehouse.tables import types
from lakehouse.tables.partitioning import Transform
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable
from lakehouse.tables.table_properties import metrics_properties, table_properties
from lakehouse.tables.upkeep import duration_text

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder


SNAPSHOT_DAYS = (7, 30)
"""Shorter: too little time to notice a mistake. Longer: replaced files stay needlessly."""
MANY_PARTITION_FIELDS = 3
_FINE_GRAINED = ("float", "double", "timestamp", "timestamp_ntz")


def warnings(
    table: IcebergTable,
    state: TableState | None,
    iceberg: IcebergRelease,
) -> Iterator[str]:
    """Yield the warnings; `state` is None if the table does not exist.

    :param iceberg: the release that writes the table.
    """
    yield from _partition_warnings(table)
    yield from _upkeep_warnings(table)
    yield from _z_order_warnings(table, iceberg)
    yield from _format_warnings(table)
    yield from _version_warnings(table)
    if state is not None:
        yield from _personal_warnings(table, state)


def _partition_warnings(table: IcebergTable) -> Iterator[str]:
    for field in table.partition_fields:
        declared = table.column(field.column).type
        if field.transform == "identity" and declared in _FINE_GRAINED:
            coarser = (
                "days(…)"
                if declared.startswith("timestamp")
                else "truncate or bucket of another column"
            )
            yield (
                f"{table.name} is partitioned by each value of {field.column} ({declared}),"
                f" which makes many tiny partitions; {coarser} makes fewer."
            )
    if len(table.partition_fields) > MANY_PARTITION_FIELDS:
        yield (
            f"{table.name} is partitioned by {len(table.partition_fields)} fields, which makes"
            f" many tiny partitions; {MANY_PARTITION_FIELDS} are many already."
        )


def _upkeep_warnings(table: IcebergTable) -> Iterator[str]:
    policy = table.upkeep_policy
    kept, (least, most) = policy.keep_snapshots_for, SNAPSHOT_DAYS
    # Time travel is not needed for logs of runs, and each append costs more with more
    # snapshots.
    if kept < timedelta(days=least) and not table.is_log_of_runs:
        yield (
            f"{table.name} keeps snapshots for {duration_text(kept)}, after which earlier rows"
            f" cannot be read or restored; expected {least} to {most} days."
        )
    elif kept > timedelta(days=most):
        yield (
            f"{table.name} keeps snapshots for {duration_text(kept)}, and replaced files"
            f" for as long; expected {least} to {most} days."
        )
    if policy.kept_by == "glue":
        yield (
            f"{table.name} is left to Glue's table optimizers, which apply does not make:"
            " without them it is not compacted, and keeps all snapshots and orphan files;"
            " see docs/upkeep.md, Left to Glue."
        )


def _z_order_warnings(table: IcebergTable, iceberg: IcebergRelease) -> Iterator[str]:
    policy = table.upkeep_policy
    if not policy.z_order:
        return
    if not policy.sort_by:
        yield f"{table.name} declares z_order, and no columns for it; expected sort_by too."
    columns = {name: table.column(name).type for name in policy.sort_by}
    if lacking := iceberg.lacks_z_order_of(columns):
        yield f"{table.name} declares z_order, and {lacking}: upkeep sorts by its columns in turn."


def _format_warnings(table: IcebergTable) -> Iterator[str]:
    if table_properties(table)["format-version"] != "3":
        return
    # Tested with PyIceberg 0.12, DuckDB 1.5.5 and Polars 2.1. Support by AWS is documented at
    # https://docs.aws.amazon.com/prescriptive-guidance/latest/apache-iceberg-on-aws/table-spec-v3.html
    yield (
        f"{table.name} is of format version 3, for good once it is. Amazon Athena does not read"
        " it, nor does Spark of EMR before 7.12 and of Glue 5.0; PyIceberg, DuckDB and Polars"
        " do, and PyIceberg does not write it."
    )


def _version_warnings(table: IcebergTable) -> Iterator[str]:
    """Warn if no rule rejects rows without a version key: all but one of them would be lost."""
    of = table.versions.of if table.versions else ()
    if not of or any(_must_have_value(table, name) for name in of):
        return
    rules = ", ".join(f"not_null({name!r})" for name in of)
    yield (
        f"{table.name}: rows without a value in {', '.join(of)} are versions of one another, of"
        f" which only one is kept, and no rule rejects them; declare {rules} to quarantine them."
    )


def _must_have_value(table: IcebergTable, name: str) -> bool:
    """Whether a column always has a value, or a rule rejects rows without one."""
    if name in SOURCE_COLUMNS or table.column(name).required:
        return True
    return any(
        name in rule.columns and not rule.cast and "NULL" in rule.predicate().upper()
        for rule in table.row_rules
        if rule.on_failure != "warn"
    )


def _personal_warnings(table: IcebergTable, state: TableState) -> Iterator[str]:
    if state.is_empty:
        return
    present = {column.name.lower() for column in state.columns}
    for name in sorted(table.personal_columns):
        kept = any(
            state.properties.get(key) != "none" for key in metrics_properties(table, name)
        )
        if name.lower() in present and kept:
            yield (
                f"{table.name}: {name} is personal from now on; the bounds of its values in the"
                " metadata of files already written stay until those files are rewritten and"
                " their snapshots have expired."
            )


NEWEST_FORMAT = 2
"""The newest format version that PyIceberg can write."""
_FIRST_PARTITION_ID = 1000
"""First id of partition fields, as in Iceberg's specification."""
_NAME_ENDINGS: Mapping[Transform, str] = {
    "identity": "",
    "years": "_year",
    "months": "_month",
    "days": "_day",
    "hours": "_hour",
    "bucket": "_bucket",
    "truncate": "_trunc",
}
"""By transform, the suffix that Spark's DDL adds to a partition field's name."""


def create_table(engine: Engine, table: IcebergTable) -> None:
    """Create a table with its partitioning, sort order and properties; no JVM.

    A later format than PyIceberg can write is set by the next step of the plan.

    :raises TableAlreadyExistsError: if another writer created it first.
    """
    schema = _schema(table)
    version = str(min(table.format_version, NEWEST_FORMAT))
    create_namespace(engine.catalog, table.namespace)
    engine.catalog.client.create_table(
        table.name,
        schema,
        table.location or new_location(engine.catalog, table.name, uuid4().hex),
        _partition_spec(table, schema),
        _sort_order(table, schema),
        {**created_properties(table), "format-version": version, "comment": table.comment},
    )


def _schema(table: IcebergTable) -> "Schema":
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    ids, fields = count(len(table.columns) + 1), []
    for number, column in enumerate(table.columns, 1):
        field_type = iceberg_type(types.parse(column.type), ids)
        doc = column.doc or None
        fields.append(NestedField(number, column.name, field_type, column.required, doc))
    return Schema(*fields)


def _partition_spec(table: IcebergTable, schema: "Schema") -> "PartitionSpec":
    from pyiceberg.partitioning import PartitionField as IcebergField
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.transforms import parse_transform

    fields = []
    for number, field in enumerate(table.partition_fields, _FIRST_PARTITION_ID):
        source = schema.find_field(field.column)
        transform = parse_transform(field.in_metadata)
        name = f"{field.column}{_NAME_ENDINGS[field.transform]}"
        fields.append(IcebergField(source.field_id, number, transform, name))
    return PartitionSpec(*fields)


def _sort_order(table: IcebergTable, schema: "Schema") -> "SortOrder":
    from pyiceberg.table.sorting import (
        UNSORTED_SORT_ORDER,
        NullOrder,
        SortDirection,
        SortField,
        SortOrder,
    )
    from pyiceberg.transforms import parse_transform

    fields = []
    for declared in table.sort_fields:
        source = schema.find_field(declared.field.column)
        direction = SortDirection.DESC if declared.descending else SortDirection.ASC
        nulls = NullOrder.NULLS_FIRST if declared.nulls_first else NullOrder.NULLS_LAST
        transform = parse_transform(declared.field.in_metadata)
        fields.append(SortField(source.field_id, transform, direction, nulls))
    return SortOrder(*fields) if fields else UNSORTED_SORT_ORDER


def denied_formats(
    table: IcebergTable, state: TableState | None, iceberg: IcebergRelease
) -> Iterator[DeniedChange]:
    """Yield a denied change if the Iceberg release cannot write the table's format."""
    current = state.format_version if state else 0
    declared = table_properties(table)["format-version"]
    reason = iceberg.rejects_format_3()
    if max(int(declared), current) < VECTORS_SINCE or reason is None:
        return
    yield DeniedChange(
        table.name,
        "its format version",
        str(current or "none yet"),
        declared,
        reason,
        "Declare format_version=2, or write it by a newer Iceberg (LAKEHOUSE_ICEBERG).",
    )


@dataclass(frozen=True)
class Plan:
    """The steps that bring one table to its declaration, in order."""

    table: str
    steps: tuple[Step, ...] = ()
    denied: tuple[DeniedChange, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the table matches its declaration."""
        return not self.steps and not self.denied

    @property
    def is_creation(self) -> bool:
        return any(step.order is Order.CREATE for step in self.steps)

    @property
    def automatic(self) -> tuple[Step, ...]:
        """The steps that run before a write."""
        return tuple(step for step in self.steps if step.automatic)

    @property
    def waiting(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if not step.automatic)

    def describe(self) -> list[str]:
        """Return one line for each step, denied change and warning."""
        return [
            *(step.description for step in self.automatic),
            *(f"{step.description} (by lakehouse apply)" for step in self.waiting),
            *(f"denied: {change}" for change in self.denied),
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
    denied = tuple(denied_formats(table, state, iceberg))
    if state is None:
        created = tuple(_creation(table))
        return Plan(table.name, created, denied, tuple(warnings(table, state, iceberg)))
    changes = [
        *denied,
        *schema_changes(table, state),
        *layout_changes(table, state, renamed_columns(table, state)),
    ]
    steps = [change for change in changes if isinstance(change, Step)]
    if not state.schema_is_committed:
        description = "commit the current schema, so that time travel shows it"
        steps.append(Step(Order.COMMIT, description))
    if state.is_empty:
        # Without files, a change affects no reader.
        steps = [replace(step, automatic=not step.blocks_writes) for step in steps]
    return Plan(
        table=table.name,
        steps=tuple(sorted(steps, key=lambda step: step.order)),
        denied=tuple(change for change in changes if isinstance(change, DeniedChange)),
        warnings=tuple(warnings(table, state, iceberg)),
    )


def ensure(
    engine: Engine,
    table: IcebergTable,
    run_id: str = "",
    *,
    with_waiting: bool = False,
    before_creation: Callable[[], None] = lambda: None,
) -> Plan:
    """Create the table, or apply the changes that are safe for readers; runs in the table's
    lock.

    Uses no Spark if nothing is to be done, or to create a table of format 1 or 2.

    :param with_waiting: also apply the changes that wait for `lakehouse apply`.
    :param before_creation: called before the table is created; an error prevents the creation.
    :returns: the plan; steps that wait without blocking writes are not applied.
    :raises EvolutionRefused: if a declared change would lose data or break readers.
    :raises PendingChanges: if a rename or a drop waits for `lakehouse apply`.
    """
    return _carry_out(
        engine, table, run_id, with_waiting=with_waiting, before_creation=before_creation
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


def _chosen_steps(planned: Plan, *, with_waiting: bool) -> tuple[Step, ...]:
    if planned.denied:
        raise EvolutionRefused("\n".join(map(str, planned.denied)))
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
    carried = carried_properties(read_history(engine, table.name), "evolution")
    properties = replace(carried, run_id=run_id, declaration=table.declaration_hash)
    commit_without_rows(engine, table.name, properties.to_summary())
