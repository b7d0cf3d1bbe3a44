"""Which columns of which tables are about people: those that are declared so, and what is computed
from them.

What a column is follows from its table and from those that this is computed from: a column has
what the one of its name has there, names that either had before (`renamed_from`) among them,
through any number of tables. A column that a function fills under another name is not known to be
the same, unless the declaration says so by `renamed_from`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from lakehouse.tables.column import Column
from lakehouse.tables.table import IcebergTable

Sources = Mapping[str, Collection[str]]
"""By table, the tables that it is computed from."""


@dataclass(frozen=True, order=True)
class Origin:
    """A column that is declared to stand for a person, or to identify one."""

    table: str
    column: str
    is_subject: bool

    def __str__(self) -> str:
        role = "the subject" if self.is_subject else "personal"
        return f"{role} in {self.table}"


Origins = Mapping[str, frozenset[Origin]]
"""By column, where it is declared to be about people; only of columns that are."""


def origins_of(tables: Mapping[str, IcebergTable], sources: Sources) -> dict[str, Origins]:
    """Return, by table, which of its columns are about people and where that is declared.

    :param sources: may name tables that nobody declared, of which nothing is known.
    """
    known = {name: _declared(table) for name, table in tables.items()}
    is_changing = True
    while is_changing:
        is_changing = False
        for name, table in tables.items():
            for source in sources.get(name, ()):
                if source in tables and source != name:
                    is_changing |= _inherit(table, known[name], tables[source], known[source])
    return {name: _frozen(columns) for name, columns in known.items()}


def names_of(column: Column) -> frozenset[str]:
    """Return the names of a column, those that it had among them, as Spark compares them:
    whatever their case.
    """
    return frozenset(name.lower() for name in (column.name, *column.renamed_from))


def _declared(table: IcebergTable) -> dict[str, set[Origin]]:
    columns: dict[str, set[Origin]] = {}
    for name in sorted(table.masked_columns):
        columns.setdefault(name, set()).update(_origins_in(table, name))
    return columns


def _origins_in(table: IcebergTable, column: str) -> Iterator[Origin]:
    if column == table.subject:
        yield Origin(table.name, column, is_subject=True)
    if column in table.personal_columns:
        yield Origin(table.name, column, is_subject=False)


def _inherit(
    table: IcebergTable,
    own: dict[str, set[Origin]],
    source: IcebergTable,
    theirs: Mapping[str, set[Origin]],
) -> bool:
    """Add what the columns of a source are to those of their names; return whether that
    changed any.
    """
    is_changed = False
    for name in sorted(theirs):
        names = names_of(source.column(name))
        for column in table.columns:
            if names_of(column) & names and not theirs[name] <= own.get(column.name, set()):
                own.setdefault(column.name, set()).update(theirs[name])
                is_changed = True
    return is_changed


def _frozen(columns: Mapping[str, set[Origin]]) -> Origins:
    return {name: frozenset(columns[name]) for name in sorted(columns)}
