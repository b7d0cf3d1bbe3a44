"""Match of declared columns with table columns, by their current or former name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehouse.iceberg.metadata.table_state import ColumnState, TableState
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.types import ColumnType, parse


@dataclass(frozen=True)
class DeclaredColumn:
    """A declared column or nested field; fields have no `doc`, `required` and `renamed_from`."""

    name: str
    type: ColumnType
    doc: str | None = None
    required: bool | None = None
    renamed_from: tuple[str, ...] = ()


def renamed_columns(table: IcebergTable, state: TableState) -> dict[str, str]:
    """Return the new name of each renamed column, by its old name in lower case."""
    matched = match_columns(declared_columns(table), state.columns)
    return {old.lower(): new for old, new in renames(matched)}


def declared_columns(table: IcebergTable) -> list[DeclaredColumn]:
    return [
        DeclaredColumn(
            column.name,
            parse(column.type),
            column.doc,
            column.required,
            tuple(column.renamed_from),
        )
        for column in table.columns
    ]


def match_columns(
    declared: Sequence[DeclaredColumn], current: Sequence[ColumnState]
) -> dict[str, ColumnState]:
    """Match each declared name with a table column; renames first, in an executable order.

    A missing name takes the column of its newest former name, even if that name is declared
    again.
    """
    present = {column.name.lower(): column for column in current}
    former_names: dict[str, str] = {}
    missing = [column for column in declared if column.name.lower() not in present]
    while missing:
        column = missing.pop(0)
        free = present.keys() - former_names.values()
        names = map(str.lower, reversed(column.renamed_from))
        former = next((name for name in names if name in free), None)
        if former:
            former_names[column.name] = former
            missing += [other for other in declared if other.name.lower() == former]
    matched = {name: present[former] for name, former in former_names.items()}
    unclaimed = present.keys() - former_names.values()
    for column in declared:
        if column.name not in matched and column.name.lower() in unclaimed:
            matched[column.name] = present[column.name.lower()]
    return matched


def renames(matched: Mapping[str, ColumnState]) -> list[tuple[str, str]]:
    """Return renamed columns (old, new) in an executable order; changes of case are ignored."""
    return [
        (column.name, name)
        for name, column in matched.items()
        if column.name.lower() != name.lower()
    ]
