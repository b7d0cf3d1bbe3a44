"""Columns about people: declared ones, and columns computed from them.

A column inherits from the columns with the same name in the tables that its table is computed
from, transitively and including former names (`renamed_from`). A column that a function fills
under another name is not recognized, unless `renamed_from` declares the name.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakehouse.tables.column import Column
from lakehouse.tables.table import IcebergTable

Sources = Mapping[str, Collection[str]]
"""The source tables of each table."""


@dataclass(frozen=True, order=True)
class Origin:
    """A column that is declared as personal or as the subject."""

    table: str
    column: str
    is_subject: bool

    def __str__(self) -> str:
        role = "the subject" if self.is_subject else "personal"
        return f"{role} in {self.table}"


Origins = Mapping[str, frozenset[Origin]]
"""The declared origins of each column about people."""


def origins_of(tables: Mapping[str, IcebergTable], sources: Sources) -> dict[str, Origins]:
    """Return, by table, the columns about people and their declared origins; `sources` may name
    undeclared tables.
    """
    known = {name: _declared(table) for name, table in tables.items()}
    is_changing = True
    while is_changing:
        is_changing = False
        for name, table in tables.items():
            for source in sources.get(name, ()):
                if source in tables and source != name:
                    is_changing |= _inherit(table, known[name], tables[source], known[source])
    return {
        name: {column: frozenset(columns[column]) for column in sorted(columns)}
        for name, columns in known.items()
    }


def names_of(column: Column) -> frozenset[str]:
    """Return the current and former names of a column in lower case, as Spark compares them."""
    return frozenset(name.lower() for name in (column.name, *column.renamed_from))


def _declared(table: IcebergTable) -> dict[str, set[Origin]]:
    columns = {
        name: {Origin(table.name, name, is_subject=False)} for name in table.personal_columns
    }
    if table.subject:
        origin = Origin(table.name, table.subject, is_subject=True)
        columns.setdefault(table.subject, set()).add(origin)
    return columns


def _inherit(
    table: IcebergTable,
    own: dict[str, set[Origin]],
    source: IcebergTable,
    inherited: Mapping[str, set[Origin]],
) -> bool:
    """Add the origins of a source's columns to columns of the same names; return whether any
    changed.
    """
    is_changed = False
    for name in sorted(inherited):
        names = names_of(source.column(name))
        for column in table.columns:
            if names_of(column) & names and not inherited[name] <= own.get(column.name, set()):
                own.setdefault(column.name, set()).update(inherited[name])
                is_changed = True
    return is_changed
