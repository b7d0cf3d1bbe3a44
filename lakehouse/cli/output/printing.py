"""What is printed: rows as an aligned table for people, as CSV and JSON for programs, and what
failed in one line.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, Literal, get_args

import click

from lakehouse.cli.output.cell_values import Column, as_text
from lakehouse.cli.output.table_layout import lines_of, terminal_width
from lakehouse.errors import UsageError
from lakehouse.storage.byte_sizes import size_text

Format = Literal["table", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

Rows = Sequence[Sequence[Any]]
"""Rows of JSON values, in the order of their columns."""
_CSV_END = "\r\n"


def render(form: Format, columns: Sequence[Column], rows: Rows) -> str:
    """Write rows in a format, without a line end at the end."""
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
    """Write an aligned table, NULL shown, numbers on the right, and how many rows there are.

    It is as wide as the terminal at most, and as wide as its cells where another program reads
    it.

    :param noun: what a row stands for.
    :param footer: printed in place of the number of rows.
    :param width: in place of the terminal's.
    """
    headings = [_shown(column.name) for column in columns]
    texts = [list(map(_shown, row)) for row in rows]
    width = terminal_width() if width is None else width
    lines = lines_of([headings, *texts], [column.is_number for column in columns], width)
    return "\n".join([*lines, f"({footer or count(len(rows), noun)})"])


def csv_text(columns: Sequence[Column], rows: Rows) -> str:
    """Write CSV: a header, each row on a line that ends as those of other programs do, NULL as
    nothing between commas.

    Line ends within a value are quoted, and stay as they are.
    """
    lines: list[str] = []
    # With this line end, a value that holds either character of it is quoted.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator=_CSV_END)
    writer.writerow([column.name for column in columns])
    for row in rows:
        writer.writerow(["" if value is None else as_text(value) for value in row])
    return "\n".join(line.removesuffix(_CSV_END) for line in lines)


def json_array(columns: Sequence[Column], rows: Rows) -> str:
    """Write one JSON array with an object for each row.

    :raises UsageError: when two columns have the same name, since one would be lost.
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
    """Write one JSON array of things that are JSON already, each on a line of its own."""
    return "[\n " + ",\n ".join(items) + "\n]" if items else "[]"


def count(number: int, noun: str) -> str:
    """Write `1 row`, `2 rows`, `1,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number_bytes: int) -> str:
    """Write a size in the largest unit that leaves a number of at least 1: `812 B`, `1.4
    MiB`.
    """
    return size_text(number_bytes)


def complain(text: str) -> None:
    """Say in one line on standard error what failed."""
    click.echo(f"lakehouse: {printable(' '.join(text.split()))}", err=True)


def printable(text: str) -> str:
    """Return a text in one line; a line end would break a table, and an escape sequence speak
    to the terminal.
    """
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )


def _shown(value: Any) -> str:
    return printable("NULL" if value is None else as_text(value))


def conclude(lines: Iterable[str], complaints: Iterable[str], *, success: bool) -> None:
    """Print what became of a command's work, and end with exit code 1 where it failed."""
    for line in lines:
        click.echo(printable(line))
    for line in complaints:
        complain(line)
    if not success:
        click.get_current_context().exit(1)
