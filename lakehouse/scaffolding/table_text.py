"""The file of a table computed from another one: sums per day, or the rows themselves."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

from lakehouse.errors import UsageError
from lakehouse.scaffolding.key_columns import is_key_name
from lakehouse.scaffolding.python_text import AssetModule, comments
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable, Merge

_IMPORTS = """\
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Overwrite, by_day
from {module} import {name} as {alias}"""
_Parts = tuple[str, str, list[Column], list[str], str]
"""Comment, note, columns, options and the function's body."""
_SUMMED_DIGITS = 10
"""Spark adds these digits to the type of a decimal's sum."""
_SUMMED = {"int": "bigint", "bigint": "bigint", "float": "double", "double": "double"}
_DECLARATION = """\
TABLE = IcebergTable(
    name={name!r},
    comment={comment!r},
    columns=[{columns}],
    {options},
)"""


@dataclass(frozen=True)
class Source:
    """The table that another one is computed from, with its module and its name there."""

    table: IcebergTable
    module: str
    name: str

    @property
    def alias(self) -> str:
        """Its name in the new file."""
        return self.table.short_name.upper()

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
    """Return the text of the file that declares a table."""
    kind = _daily if source.day else _copied
    comment, note, columns, options, body = kind(source)
    by = f", by={source.day!r}" if source.day else ""
    parameter = source.table.short_name
    declaration = _DECLARATION.format(
        name=name,
        comment=comment,
        columns="".join(f"{_column(column)}," for column in columns),
        options=", ".join(options),
    )
    return AssetModule(
        name,
        parameter,
        comment,
        _IMPORTS.format(module=source.module, name=source.name, alias=source.alias),
        comments("A first version, to be changed:", [note]) + declaration,
        f'@iceberg_asset(TABLE, inputs={{"{parameter}": latest({source.alias}{by})}})',
        body,
    ).text


def _daily(source: Source) -> _Parts:
    """Count the rows of each day, and sum its numbers."""
    table, day = source.table, str(source.day)
    is_taken = table.short_name.lower() in {column.name.lower() for column in table.columns}
    count = f"{table.short_name}_rows" if is_taken else table.short_name
    summed = [column for column in table.columns if _can_be_summed(table, column)]
    columns = [table.column(day), Column(count, "bigint", "How many rows there are.")]
    columns += [
        Column(column.name, _sum_type(column), f"Sum of {column.name}.") for column in summed
    ]
    sums = [f"count(1) AS {_sql_name(count)}"]
    sums += [f"sum({_sql_name(c.name)}) AS {_sql_name(c.name)}" for c in summed]
    terms = ", ".join(f"expr({sql!r})" for sql in sums)
    return (
        f"Counts and sums of {table.name} per day.",
        "Each number is summed; delete sums without a meaning, such as those of prices.",
        columns,
        [
            f"write=by_day({day!r}, like={source.alias})",
            f"rules=[not_null({day!r}), unique({day!r})]",
        ],
        "from pyspark.sql.functions import expr\n\n"
        f"return {table.short_name}.groupBy({day!r}).agg({terms})",
    )


def _copied(source: Source) -> _Parts:
    """Copy the rows without columns that identify people."""
    table = source.table
    kept = [c for c in table.columns if not c.personal and not c.name.startswith("_")]
    names = [column.name for column in kept]
    options = ["write=Overwrite()"]
    if isinstance(table.write, Merge):
        options.append(f"rules=[unique({', '.join(map(repr, table.write.on))})]")
    if table.subject in names:
        options.append(f"subject={table.subject!r}")
    return (
        f"The rows of {table.name}.",
        "Columns that identify people, and those of the source, are left out.",
        kept,
        options,
        f"return {table.short_name}.select({', '.join(map(repr, names))})",
    )


def _column(column: Column) -> str:
    parts = [column.name, column.type, *([column.doc] if column.doc else [])]
    return f"Column({', '.join(map(repr, parts))})"


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
