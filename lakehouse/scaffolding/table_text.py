"""The text of the file that declares a table which is computed from another one: figures of each
day where that is written by days, else its rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.scaffolding.code_layout import (
    Argument,
    Call,
    Code,
    Collection,
    Layout,
    quoted_text,
)
from lakehouse.scaffolding.module_text import Import, Module, function_text
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable, Merge

_TABLE = "lakehouse.tables.table"
_UNIQUE = "lakehouse.iceberg.rules.unique_and_references"
_SUMMED_DIGITS = 10
"""Digits that Spark adds to the type of a decimal's sum."""
_SUMMED = {"int": "bigint", "bigint": "bigint", "float": "double", "double": "double"}


@dataclass(frozen=True)
class Source:
    """The table that another is computed from: where it is declared, and as which name there."""

    table: IcebergTable
    module: str
    name: str

    @property
    def alias(self) -> str:
        """What the new file calls it."""
        return self.table.short_name.upper()

    @property
    def day(self) -> str | None:
        """The column by whose days it is written; None where it is written otherwise."""
        windows = self.table.windows
        return self.table.overwritten_by if windows and windows.unit == "day" else None


@dataclass(frozen=True)
class _Parts:
    """What differs between the kinds of tables."""

    comment: str
    note: str
    imports: Sequence[Import]
    read: Code
    columns: Sequence[Code]
    write: Call
    rules: Sequence[Code]
    body: str
    subject: str | None = None


def table_text(name: str, source: Source, package: str, layout: Layout) -> str:
    """Return the text of the file; it reads as one that was written by hand."""
    day = source.day
    parts = _daily(source, day, layout) if day else _copied(source, layout)
    parameter = source.table.short_name
    inputs = Collection([Argument(quoted_text(parameter), parts.read, ":")], "{}")
    decorator = Call("iceberg_asset", ["TABLE", Argument("inputs", inputs)])
    function = function_text(
        layout,
        layout.statement("@", decorator),
        name.split(".")[1],
        parameter,
        parts.comment,
        parts.body,
    )
    comment = layout.comments([parts.note], title="A beginning, to be changed:")
    return Module(
        f"`{name}`: {parts.comment[:1].lower()}{parts.comment[1:]}",
        [
            (source.module, f"{source.name} as {source.alias}"),
            ("lakehouse.orchestration.iceberg_asset", "iceberg_asset"),
            (_TABLE, "Column"),
            (_TABLE, "IcebergTable"),
            *parts.imports,
        ],
        (comment + layout.statement("TABLE = ", _declaration(name, parts)),),
        function,
        package.split(".")[0],
    ).text(layout)


def _declaration(name: str, parts: _Parts) -> Call:
    arguments = [
        Argument("name", quoted_text(name)),
        Argument("comment", quoted_text(parts.comment)),
        Argument("columns", Collection(parts.columns, is_open=True)),
        Argument("write", parts.write),
    ]
    if parts.rules:
        arguments.append(Argument("rules", Collection(parts.rules)))
    if parts.subject:
        arguments.append(Argument("subject", quoted_text(parts.subject)))
    return Call("IcebergTable", arguments, is_open=True)


def _daily(source: Source, day: str, layout: Layout) -> _Parts:
    """Count the rows of each day, and sum what can be summed."""
    table = source.table
    taken = {column.name.lower() for column in table.columns}
    count = (
        f"{table.short_name}_rows" if table.short_name.lower() in taken else table.short_name
    )
    summed = [column for column in table.columns if _can_be_summed(table, column)]
    columns = [
        _column(table.column(day)),
        _column(Column(count, "bigint", "How many rows there are.")),
    ]
    sums = [f"count(1) AS {_sql_name(count)}"]
    for column in summed:
        columns.append(
            _column(Column(column.name, _sum_type(column), f"Sum of {column.name}."))
        )
        sums.append(f"sum({_sql_name(column.name)}) AS {_sql_name(column.name)}")
    grouped = f"{table.short_name}.groupBy({quoted_text(day)}).agg"
    terms = [Call("expr", [quoted_text(sql)]) for sql in sums]
    body = layout.statement("return ", Call(grouped, terms), indent=4)
    return _Parts(
        comment=f"One row for each day of {table.name}, in figures.",
        note="Each number is summed; drop what means nothing as a sum, such as prices.",
        imports=[
            ("lakehouse.iceberg.read.inputs", "latest"),
            ("lakehouse.iceberg.rules.rows", "not_null"),
            (_UNIQUE, "unique"),
            (_TABLE, "by_day"),
        ],
        read=Call("latest", [source.alias, Argument("by", quoted_text(day))]),
        columns=columns,
        write=Call("by_day", [quoted_text(day), Argument("like", source.alias)]),
        rules=[Call(rule, [quoted_text(day)]) for rule in ("not_null", "unique")],
        body=f"    from pyspark.sql.functions import expr\n\n{body}",
    )


def _copied(source: Source, layout: Layout) -> _Parts:
    """Take the rows as they are, without what identifies people."""
    table = source.table
    kept = [
        column
        for column in table.columns
        if not column.personal and not column.name.startswith("_")
    ]
    key = table.write.on if isinstance(table.write, Merge) else ()
    names = [quoted_text(column.name) for column in kept]
    return _Parts(
        comment=f"The rows of {table.name}.",
        note="Columns that identify people, and those of the source, are left out.",
        imports=[(_TABLE, "Overwrite"), *([(_UNIQUE, "unique")] if key else [])],
        read=source.alias,
        columns=[_column(column) for column in kept],
        write=Call("Overwrite", []),
        rules=[Call("unique", [quoted_text(name) for name in key])] if key else [],
        body=layout.statement("return ", Call(f"{table.short_name}.select", names), indent=4),
        subject=table.subject if table.subject in [column.name for column in kept] else None,
    )


def _column(column: Column) -> Code:
    doc = [quoted_text(column.doc)] if column.doc else []
    return Call("Column", [quoted_text(column.name), quoted_text(column.type), *doc])


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
