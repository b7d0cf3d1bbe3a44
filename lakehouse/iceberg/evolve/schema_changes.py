"""How the columns of a table differ from those declared: pure, and the same at each depth of a
struct.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakehouse.iceberg.evolve import schema_steps
from lakehouse.iceberg.evolve.matched_columns import (
    DeclaredColumn,
    declared_columns,
    match_columns,
    renames,
)
from lakehouse.iceberg.evolve.schema_steps import Change, Path, Refusal, dotted
from lakehouse.iceberg.metadata.column_order import moves, with_added
from lakehouse.iceberg.metadata.table_state import ColumnState, TableState
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.type_promotion import is_wider, why_not_wider
from lakehouse.tables.types import Array, ColumnType, Decimal, Map, Struct


@dataclass(frozen=True)
class _Context:
    table: IcebergTable
    state: TableState

    def refuse(
        self, path: Path, current: object, declared: object, why: str, next_step: str
    ) -> Refusal:
        return Refusal(
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
    """Yield the steps that bring a table's columns to its declaration, and what of it is
    refused.
    """
    return _fields(_Context(table, state), (), declared_columns(table), state.columns)


def _fields(
    context: _Context,
    path: Path,
    declared: Sequence[DeclaredColumn],
    current: Sequence[ColumnState],
) -> Iterator[Change]:
    matched = match_columns(declared, current)
    for old, new in renames(matched):
        yield schema_steps.rename_column(old, new)
    previous: str | None = None
    for want in declared:
        have = matched.get(want.name)
        if have is None:
            yield from _add(context, path, want, previous)
        else:
            yield from _change(context, path, want, have)
        previous = want.name
    kept = {have.name for have in matched.values()}
    undeclared = [have for have in current if have.name not in kept]
    yield from _undeclared(context, path, declared, undeclared)
    yield from _moves(path, declared, [have.name for have in current], matched)


def _add(
    context: _Context, path: Path, want: DeclaredColumn, previous: str | None
) -> Iterator[Change]:
    full = (*path, want.name)
    partition_names = {
        name.lower(): column for name, column in context.state.partition_names.items()
    }
    source = partition_names.get(want.name.lower())
    if want.required:
        yield context.refuse(
            full,
            "absent",
            f"{want.type}, required",
            "existing rows would have NULL there.",
            "Declare it without required=True; a not_null rule speaks for the rows to come.",
        )
    elif not path and source is not None:
        yield context.refuse(
            full,
            "absent",
            want.type,
            f"its name is that of the partition field made from {source}.",
            "Give the new column another name.",
        )
    else:
        yield schema_steps.add_column(full, str(want.type), want.doc or "", previous)


def _change(
    context: _Context, path: Path, want: DeclaredColumn, have: ColumnState
) -> Iterator[Change]:
    is_renamed = have.name.lower() != want.name.lower()
    name = want.name if is_renamed else have.name
    yield from _retype(context, (*path, name), want.type, have.type)
    if want.doc is not None and want.doc != have.doc:
        yield schema_steps.comment_on_column(name, want.doc)
    if want.required is False and have.required:
        yield schema_steps.allow_null(name)
    if want.required and not have.required:
        yield context.refuse(
            (name,),
            have.type,
            f"{want.type}, required",
            "rows that are there may have NULL in it.",
            "Declare it without required=True; a not_null rule speaks for the rows to come.",
        )


def _retype(
    context: _Context, path: Path, want: ColumnType, have: ColumnType
) -> Iterator[Change]:
    if want == have:
        return
    if isinstance(want, Struct) and isinstance(have, Struct):
        declared = [DeclaredColumn(field.name, field.type) for field in want.fields]
        current = [ColumnState(field.name, field.type) for field in have.fields]
        yield from _fields(context, path, declared, current)
    elif isinstance(want, Array) and isinstance(have, Array):
        yield from _retype(context, (*path, "element"), want.element, have.element)
    elif isinstance(want, Map) and isinstance(have, Map) and want.key == have.key:
        yield from _retype(context, (*path, "value"), want.value, have.value)
    elif is_wider(want, have):
        yield from _widen(context, path, want, have)
    else:
        yield context.refuse(
            path,
            have,
            want,
            why_not_wider(want, have),
            f"Declare it {have} again, or add a column of type {want} under another name and"
            " fill it from this one.",
        )


def _widen(
    context: _Context, path: Path, want: ColumnType, have: ColumnType
) -> Iterator[Change]:
    identities = {
        field.column.lower()
        for field in context.state.past_partitioning
        if field.transform == "identity"
    }
    by_value = dotted(path).lower() in identities and not isinstance(want, Decimal)
    if by_value and not context.state.is_empty:
        # Iceberg hands the values of an identity partition on in the new type; a scan of an old
        # snapshot then fails with a ClassCastException, but for decimals (Iceberg 1.12 on Spark
        # 4.1).
        yield context.refuse(
            path,
            have,
            want,
            "the table is, or was, partitioned by its values, and earlier snapshots could not"
            " be read.",
            f"Declare it {have} again, or add a column of type {want} under another name and"
            " fill it from this one.",
        )
    else:
        yield schema_steps.widen_column(path, str(have), str(want))


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
    for have in undeclared:
        full = (*path, have.name)
        successor = successors.get(have.name.lower())
        if context.is_dropped(full) and _is_partitioned_by(context, full):
            yield context.refuse(
                full,
                have.type,
                "dropped",
                "a partition spec of the table, which older files may follow, is made from it:"
                " without it earlier snapshots and the table's own metadata could not be read.",
                "Keep it declared.",
            )
        elif context.is_dropped(full):
            yield schema_steps.drop_column(full)
        elif successor is not None:
            yield context.refuse(
                full,
                have.type,
                f"the former name of {successor.name} ({successor.type})",
                f"the table already has both, so {have.name} cannot take that name.",
                f'List it in dropped=["{dotted(full)}"] if its values may go, or declare it as'
                " a column of its own.",
            )
        else:
            yield context.refuse(
                full,
                have.type,
                "absent",
                "a column does not go by being left out.",
                f'Declare it again, list it in dropped=["{dotted(full)}"], or name it in'
                " renamed_from=… of the column that it became.",
            )


def _is_partitioned_by(context: _Context, path: Path) -> bool:
    """Whether a partition spec, present or past, is made from a column or a field inside it."""
    inside = f"{dotted(path)}.".lower()
    return any(
        f"{field.column.lower()}.".startswith(inside)
        for field in context.state.past_partitioning
    )


def _moves(
    path: Path,
    declared: Sequence[DeclaredColumn],
    current: Sequence[str],
    matched: Mapping[str, ColumnState],
) -> Iterator[Change]:
    names = [column.name for column in declared]
    declared_as = {have.name: name for name, have in matched.items()}
    kept = [declared_as[name] for name in current if name in declared_as]
    for name, after in moves(with_added(kept, names), names):
        yield schema_steps.move_column((*path, name), after)
