"""Which column of a table each declared one is: by its name, or by one that it had."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehouse.iceberg.metadata.table_state import ColumnState, TableState
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.types import ColumnType, parse


@dataclass(frozen=True)
class Wanted:
    """A column, or a field inside one, as declared; a field says nothing of `doc`, `required`
    and `renamed_from`.
    """

    name: str
    type: ColumnType
    doc: str | None = None
    required: bool | None = None
    renamed_from: tuple[str, ...] = ()


def renamed_columns(table: IcebergTable, state: TableState) -> dict[str, str]:
    """Return the new name of each column that is renamed, by its old name in lower case."""
    return {
        old.lower(): new
        for old, new in renames(match_columns(wanted_columns(table), state.columns))
    }


def wanted_columns(table: IcebergTable) -> list[Wanted]:
    """Return the declared columns of a table."""
    return [
        Wanted(
            column.name,
            parse(column.type),
            column.doc,
            column.required,
            tuple(column.renamed_from),
        )
        for column in table.columns
    ]


def match_columns(
    wanted: Sequence[Wanted], found: Sequence[ColumnState]
) -> dict[str, ColumnState]:
    """Pair each wanted name with the column that it is in the table; renames first, in the
    order that they can run in.

    A name that is missing takes the column of its newest former name, also where that name is
    declared anew.
    """
    present = {have.name.lower(): have for have in found}
    renamed: dict[str, str] = {}
    missing = [want for want in wanted if want.name.lower() not in present]
    while missing:
        want = missing.pop(0)
        free = (
            name.lower()
            for name in reversed(want.renamed_from)
            if name.lower() in present.keys() - renamed.values()
        )
        if former := next(free, None):
            renamed[want.name] = former
            missing += [other for other in wanted if other.name.lower() == former]
    named = {want.name: want.name.lower() for want in wanted if want.name not in renamed}
    left = present.keys() - renamed.values()
    return {
        name: present[key]
        for name, key in (renamed | named).items()
        if name in renamed or key in left
    }


def renames(matched: Mapping[str, ColumnState]) -> list[tuple[str, str]]:
    """Return the old and the new name of what is renamed, in the order that it can run in; case
    does not count.
    """
    return [
        (have.name, name) for name, have in matched.items() if have.name.lower() != name.lower()
    ]
