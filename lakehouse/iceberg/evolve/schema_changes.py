"""Differences between the actual and declared columns, at each depth of a struct."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakehouse.iceberg.evolve.matched_columns import (
    DeclaredColumn,
    declared_columns,
    match_columns,
    renames,
)
from lakehouse.iceberg.evolve.schema_steps import (
    Change,
    DeniedChange,
    Order,
    Path,
    Step,
    dotted,
)
from lakehouse.iceberg.metadata.table_state import ColumnState, TableState
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.type_promotion import is_wider, why_not_wider
from lakehouse.tables.types import Array, ColumnType, Decimal, Map, Struct


@dataclass(frozen=True)
class _Context:
    table: IcebergTable
    state: TableState

    def deny(
        self, path: Path, current: object, declared: object, why: str, next_step: str
    ) -> DeniedChange:
        return DeniedChange(
            self.table.name,
            f"column {dotted(path)}",
            str(current),
            str(declared),
            why,
            next_step,
        )

    def is_dropped(self, path: Path) -> bool:
        return dotted(path).lower() in {name.lower() for name in self.table.dropped}


def schema_changes(table: IcebergTable, state: TableState) -> Iterator[Change]:
    """Yield the steps and denied changes for a table's columns."""
    return _fields(_Context(table, state), (), declared_columns(table), state.columns)


def _fields(
    context: _Context,
    path: Path,
    declared: Sequence[DeclaredColumn],
    current: Sequence[ColumnState],
) -> Iterator[Change]:
    matched = match_columns(declared, current)
    for old, new in renames(matched):
        yield Step(
            Order.RENAME,
            f"rename column {old} to {new}",
            (f"RENAME COLUMN {identifier(old)} TO {identifier(new)}",),
            automatic=False,
            blocks_writes=True,
        )
    previous: str | None = None
    for target in declared:
        actual = matched.get(target.name)
        if actual is None:
            yield from _add(context, path, target, previous)
        else:
            yield from _change(context, path, target, actual)
        previous = target.name
    kept = {actual.name for actual in matched.values()}
    undeclared = [actual for actual in current if actual.name not in kept]
    yield from _undeclared(context, path, declared, undeclared)


def _add(
    context: _Context, path: Path, target: DeclaredColumn, previous: str | None
) -> Iterator[Change]:
    full = (*path, target.name)
    partition_names = {
        name.lower(): column for name, column in context.state.partition_names.items()
    }
    source = partition_names.get(target.name.lower())
    if target.required:
        yield context.deny(
            full,
            "absent",
            f"{target.type}, required",
            "existing rows would have NULL there.",
            "Declare it without required=True, and add a not_null rule for new rows.",
        )
    elif not path and source is not None:
        yield context.deny(
            full,
            "absent",
            target.type,
            f"its name is that of the partition field made from {source}.",
            "Give the new column another name.",
        )
    else:
        comment = f" COMMENT {literal(target.doc)}" if target.doc else ""
        place = f"after {previous}" if previous else "first"
        place_sql = f"AFTER {identifier(previous)}" if previous else "FIRST"
        yield Step(
            Order.ADD,
            f"add column {dotted(full)} {target.type} {place}",
            (f"ADD COLUMN {identifier(*full)} {target.type}{comment} {place_sql}",),
        )


def _change(
    context: _Context, path: Path, target: DeclaredColumn, actual: ColumnState
) -> Iterator[Change]:
    is_renamed = actual.name.lower() != target.name.lower()
    name = target.name if is_renamed else actual.name
    yield from _retype(context, (*path, name), target.type, actual.type)
    if target.doc is not None and target.doc != actual.doc:
        yield Step(
            Order.COMMENT,
            f"describe column {name} as {target.doc!r}",
            (f"ALTER COLUMN {identifier(name)} COMMENT {literal(target.doc)}",),
        )
    if target.required is False and actual.required:
        yield Step(
            Order.ALLOW_NULL,
            f"allow NULL in column {name}",
            (f"ALTER COLUMN {identifier(name)} DROP NOT NULL",),
            automatic=False,
        )
    if target.required and not actual.required:
        yield context.deny(
            (name,),
            actual.type,
            f"{target.type}, required",
            "existing rows can have NULL there.",
            "Declare it without required=True, and add a not_null rule for new rows.",
        )


def _retype(
    context: _Context, path: Path, target: ColumnType, actual: ColumnType
) -> Iterator[Change]:
    if target == actual:
        return
    if isinstance(target, Struct) and isinstance(actual, Struct):
        declared = [DeclaredColumn(field.name, field.type) for field in target.fields]
        current = [ColumnState(field.name, field.type) for field in actual.fields]
        yield from _fields(context, path, declared, current)
    elif isinstance(target, Array) and isinstance(actual, Array):
        yield from _retype(context, (*path, "element"), target.element, actual.element)
    elif isinstance(target, Map) and isinstance(actual, Map) and target.key == actual.key:
        yield from _retype(context, (*path, "value"), target.value, actual.value)
    elif is_wider(target, actual):
        yield from _widen(context, path, target, actual)
    else:
        yield context.deny(
            path,
            actual,
            target,
            why_not_wider(target, actual),
            _next_step(context, target, actual),
        )


def _next_step(context: _Context, target: ColumnType, actual: ColumnType) -> str:
    """Return what to do instead of changing the type of a column."""
    if context.state.is_empty:
        drop = f"DROP TABLE {context.table.name}"
        return f"It has no rows: `lakehouse sql --write '{drop}'`, and its next run creates it."
    return (
        f"Declare it {actual} again, or add a column of type {target} under another name and"
        " fill it from this one."
    )


def _widen(
    context: _Context, path: Path, target: ColumnType, actual: ColumnType
) -> Iterator[Change]:
    identities = {
        field.column.lower()
        for field in context.state.past_partitioning
        if field.transform == "identity"
    }
    by_value = dotted(path).lower() in identities and not isinstance(target, Decimal)
    if by_value and not context.state.is_empty:
        # Iceberg returns values of an identity partition in the new type. A scan of an old
        # snapshot then fails with a ClassCastException, except for decimals (Iceberg 1.12 on
        # Spark 4.1).
        yield context.deny(
            path,
            actual,
            target,
            "the table is, or was, partitioned by its values, and earlier snapshots could not"
            " be read.",
            _next_step(context, target, actual),
        )
    else:
        yield Step(
            Order.WIDEN,
            f"widen column {dotted(path)} from {actual} to {target}",
            (f"ALTER COLUMN {identifier(*path)} TYPE {target}",),
        )


def _undeclared(
    context: _Context,
    path: Path,
    declared: Sequence[DeclaredColumn],
    undeclared: Sequence[ColumnState],
) -> Iterator[Change]:
    successors = {}
    for column in declared:
        for former in column.renamed_from:
            successors[former.lower()] = column
    for actual in undeclared:
        full = (*path, actual.name)
        successor = successors.get(actual.name.lower())
        if context.is_dropped(full) and _is_partitioned_by(context, full):
            yield context.deny(
                full,
                actual.type,
                "dropped",
                "a partition spec of the table, which older files may follow, is made from it:"
                " without it earlier snapshots and the table's own metadata could not be read.",
                "Keep it declared.",
            )
        elif context.is_dropped(full):
            yield Step(
                Order.DROP,
                f"drop column {dotted(full)}",
                (f"DROP COLUMN {identifier(*full)}",),
                automatic=False,
                blocks_writes=True,
            )
        elif successor is not None:
            yield context.deny(
                full,
                actual.type,
                f"the former name of {successor.name} ({successor.type})",
                f"the table already has both, so {actual.name} cannot take that name.",
                f'List it in dropped=["{dotted(full)}"] to drop its values, or declare it as'
                " a separate column.",
            )
        else:
            yield context.deny(
                full,
                actual.type,
                "absent",
                "an undeclared column is not dropped.",
                f'Declare it again, list it in dropped=["{dotted(full)}"], or add it to'
                " renamed_from=… of its new name.",
            )


def _is_partitioned_by(context: _Context, path: Path) -> bool:
    """Whether a current or past partition spec uses a column or a nested field."""
    inside = f"{dotted(path)}.".lower()
    return any(
        f"{field.column.lower()}.".startswith(inside)
        for field in context.state.past_partitioning
    )
