"""The file of a table computed from another one: sums per day, or the rows themselves."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

from lakehouse.errors import UsageError
from lakehouse.scaffolding.key_columns import is_key_name
from lakehouse.scaffolding.python_text import render
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable, Merge

_SUMMED_DIGITS = 10
"""Spark adds these digits to the type of a decimal's sum."""
_SUMMED = {"int": "bigint", "bigint": "bigint", "float": "double", "double": "double"}


@dataclass(frozen=True)
class Source:
    """The table that another one is computed from, with its module and its name there."""

    table: IcebergTable
    module: str
    name: str

    @property
    def day(self) -> str | None:
        """The column by whose days it is written; None if it is written otherwise."""
        windows = self.table.windows
        return self.table.overwritten_by if windows and windows.unit == "day" else None


def source_of(modules: Iterable[ModuleType], table: IcebergTable) -> Source:
    """Return the module that declares a table, and the name there.

    Modules that import it have it too: the module with the table's name takes precedence.

    :raises UsageError: no module declares it under a name.
    """
    places = [
        (module.__name__.rpartition(".")[2] != table.short_name, module.__name__, name)
        for module in modules
        for name, value in vars(module).items()
        # The project adds options to a copy of the declared table.
        if isinstance(value, IcebergTable) and value.name == table.name
    ]
    if not places:
        raise UsageError(
            f"No module declares {table.name} under a name; expected one that can be imported."
        )
    _, module_name, name = min(places)
    return Source(table, module_name, name)


def table_text(name: str, source: Source) -> str:
    """Return the text of the file that declares a table: sums per day, or the rows themselves."""
    table, day = source.table, source.day
    rows = table.short_name
    if day is None:
        # Columns that identify people, and those of the source, are left out.
        columns = [c for c in table.columns if not c.personal and not c.name.startswith("_")]
        sums = []
    else:
        is_taken = rows.lower() in {column.name.lower() for column in table.columns}
        count = f"{rows}_rows" if is_taken else rows
        summed = [column for column in table.columns if _can_be_summed(table, column)]
        columns = [table.column(day), Column(count, "bigint", "How many rows there are.")]
        columns += [Column(c.name, _sum_type(c), f"Sum of {c.name}.") for c in summed]
        sums = [f"count(1) AS {_sql_name(count)}"]
        sums += [f"sum({_sql_name(c.name)}) AS {_sql_name(c.name)}" for c in summed]
    return render(
        "table.py.jinja",
        name=name,
        source=source,
        alias=rows.upper(),
        comment=f"Counts and sums of {table.name} per day."
        if day
        else f"The rows of {table.name}.",
        columns=columns,
        day=day,
        key=table.write.on if isinstance(table.write, Merge) else (),
        subject=table.subject if table.subject in {column.name for column in columns} else None,
        rows=rows,
        sums=sums,
    )


def _can_be_summed(table: IcebergTable, column: Column) -> bool:
    is_number = column.type in _SUMMED or column.type.startswith("decimal")
    is_key = is_key_name(column.name) or column.name in (table.subject, table.stamp)
    return is_number and not is_key and not column.personal and not column.name.startswith("_")


def _sum_type(column: Column) -> str:
    parsed = types.parse(column.type)
    if isinstance(parsed, types.Decimal):
        digits = min(types.WIDEST, parsed.precision + _SUMMED_DIGITS)
        return str(types.Decimal(digits, parsed.scale))
    return _SUMMED[column.type]


def _sql_name(name: str) -> str:
    return name if name.isidentifier() else identifier(name)
