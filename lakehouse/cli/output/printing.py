"""Formats output as aligned tables, CSV or JSON, and prints errors in one line."""

import csv
import json
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, Literal, get_args

import click

from lakehouse.cli.output.cell_values import Column, as_text
from lakehouse.cli.output.table_layout import lines_of, terminal_width
from lakehouse.errors import UsageError

Format = Literal["table", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

Rows = Sequence[Sequence[Any]]
"""Rows of JSON values in column order."""
_CSV_END = "\r\n"


def render(form: Format, columns: Sequence[Column], rows: Rows) -> str:
    """Format rows, without a trailing newline."""
    if form == "table":
        return table(columns, rows)
    if form == "csv":
        return csv_text(columns, rows)
    return json_array(columns, rows)


def table(
    columns: Sequence[Column],
    rows: Rows,
    *,
    noun: str = "row",
    footer: str = "",
    width: int | None = None,
) -> str:
    """Format an aligned table with a row count; NULL is shown.

    The maximum width is that of the terminal; unlimited if the output is not a terminal.

    :param noun: noun for the row count.
    :param footer: replaces the row count.
    :param width: replaces the width of the terminal.
    """
    headings = [_shown(column.name) for column in columns]
    texts = [list(map(_shown, row)) for row in rows]
    width = terminal_width() if width is None else width
    lines = lines_of([headings, *texts], [column.is_number for column in columns], width)
    return "\n".join([*lines, f"({footer or count(len(rows), noun)})"])


def print_result(
    form: Format, lines: Iterable[str], columns: Sequence[Column], rows: Rows
) -> None:
    """Print lines, and rows in a format for programs, which read only rows from standard
    output.
    """
    for line in lines:
        click.echo(printable(line), err=form != "table")
    if form != "table" and columns:
        click.echo(render(form, columns, rows))


def csv_text(columns: Sequence[Column], rows: Rows) -> str:
    """Format CSV with a header; newlines within values are quoted and unchanged."""
    lines: list[str] = []
    # With this terminator, the writer quotes values that contain CR or LF.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator=_CSV_END)
    writer.writerow([column.name for column in columns])
    for row in rows:
        writer.writerow(["" if value is None else as_text(value) for value in row])
    return "\n".join(line.removesuffix(_CSV_END) for line in lines)


def json_array(columns: Sequence[Column], rows: Rows) -> str:
    """Format one JSON array with an object per row.

    :raises UsageError: duplicate column names, which an object cannot represent.
    """
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"The result has more than one column {', '.join(twice)}; a JSON object can hold"
            " one.",
            next_step="Give them names of their own with AS.",
        )
    lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows]
    return json_list(lines)


def json_list(items: Sequence[str]) -> str:
    """Format JSON texts as one JSON array, one per line."""
    return "[\n " + ",\n ".join(items) + "\n]" if items else "[]"


def count(number: int, noun: str) -> str:
    """Format a count: `1 row`, `2 rows`, `1,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def complain(text: str) -> None:
    """Print an error in one line on standard error."""
    click.echo(f"lakehouse: {printable(' '.join(text.split()))}", err=True)


def printable(text: str) -> str:
    """Escape control characters: newlines break tables, and escape sequences affect terminals."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )


def _shown(value: Any) -> str:
    return printable("NULL" if value is None else as_text(value))


def conclude(lines: Iterable[str], complaints: Iterable[str], *, success: bool) -> None:
    """Print the result of a command; exit with 1 after a failure."""
    for line in lines:
        click.echo(printable(line))
    for line in complaints:
        complain(line)
    if not success:
        click.get_current_context().exit(1)
