"""Table layout for terminals: wraps cells without truncation."""

import io
import shutil
import sys
from collections.abc import Sequence

from lakehouse.cli.output.progress import is_terminal

_BETWEEN = " | "
_MAX_UNBROKEN_WIDTH = 24
"""Words up to this width, such as ids and timestamps, are not broken, so users can copy them."""
_BOX = "    \n  | \n -+-\n  | \n  | \n  | \n  | \n    \n"
"""Rich's notation: a line below the header, and bars between columns."""


def terminal_width() -> int | None:
    """Return the width of the terminal; None if standard output is not a terminal."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def cell_width(text: str) -> int:
    """Return the display width of a text; some characters are two columns wide."""
    from rich.cells import cell_len

    return cell_len(text)


def lines_of(
    rows: Sequence[Sequence[str]], numbers: Sequence[bool], width: int | None
) -> list[str]:
    """Return the lines of an aligned table; the first row is the header."""
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    if width is not None and sum(widths) + len(_BETWEEN) * (len(widths) - 1) > width:
        return _wrapped(rows, numbers, width)
    heading, *body = rows
    lines = [_line(heading, widths, [False] * len(widths))]
    lines.append("-+-".join("-" * width for width in widths))
    # Rich takes a second for ten thousand cells.
    return lines + [_line(row, widths, numbers) for row in body]


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    padded = []
    for text, width, is_number in zip(cells, widths, numbers, strict=True):
        space = " " * (width - cell_width(text))
        padded.append(space + text if is_number else text + space)
    return _BETWEEN.join(padded).rstrip()


def _wrapped(rows: Sequence[Sequence[str]], numbers: Sequence[bool], width: int) -> list[str]:
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heading, *body = rows
    table = Table(box=Box(_BOX), show_edge=False, pad_edge=False)
    for at, name in enumerate(heading):
        words = " ".join(row[at] for row in rows).split(" ")
        table.add_column(
            Text(name, justify="left"),
            justify="right" if numbers[at] else "left",
            overflow="fold",
            min_width=min(_MAX_UNBROKEN_WIDTH, max(map(cell_width, words))),
        )
    for row in body:
        table.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        # Ids and timestamps can be wider than the terminal, which then wraps the line.
        console.print(table, crop=False)
    return [line.rstrip() for line in capture.get().splitlines()]
