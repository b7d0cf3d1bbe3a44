"""Table layout for terminals: wraps cells without truncation."""

import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest

from lakehouse.cli.output.progress import is_terminal

_BETWEEN = " | "
_MAX_UNBROKEN_WIDTH = 24
"""Words up to this width, such as ids and timestamps, are not broken, so users can copy them."""


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
    natural = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    if width is None or _total(natural) <= width:
        return _table(rows, natural, numbers)
    floors = list(natural)
    for at, column in enumerate(zip(*rows, strict=True)):
        if not numbers[at]:
            floors[at] = max(map(_longest_word, column))
    return _table(rows, _shrink(natural, floors, width), numbers)


def wrap(text: str, width: int) -> list[str]:
    """Wrap a text at spaces, and within words that are longer than the width."""
    from rich.cells import chop_cells

    if cell_width(text) <= width:
        return [text]
    lines = [""]
    for at, word in enumerate(text.split(" ")):
        longer = f"{lines[-1]} {word}" if at else word
        if cell_width(longer) <= width:
            lines[-1] = longer
            continue
        parts = chop_cells(word, width)
        lines[-1:] = [lines[-1], *parts] if lines[-1] else parts
    return lines


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * (len(widths) - 1)


def _longest_word(text: str) -> int:
    return min(_MAX_UNBROKEN_WIDTH, max(map(cell_width, text.split(" "))))


def _shrink(widths: Sequence[int], floors: Sequence[int], limit: int) -> list[int]:
    """Narrow the widest columns until the table fits, or all have their minimum."""
    narrowed = list(widths)
    while _total(narrowed) > limit:
        wider = [at for at, width in enumerate(narrowed) if width > floors[at]]
        if not wider:
            break
        narrowed[max(wider, key=narrowed.__getitem__)] -= 1
    return narrowed


def _table(
    rows: Sequence[Sequence[str]], widths: Sequence[int], numbers: Sequence[bool]
) -> list[str]:
    heading, *body = rows
    lines = _row(heading, widths, [False] * len(widths))
    lines.append("-+-".join("-" * width for width in widths))
    for row in body:
        lines += _row(row, widths, numbers)
    return lines


def _row(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> list[str]:
    wrapped = map(wrap, cells, widths)
    return [
        _BETWEEN.join(map(_padded, parts, widths, numbers)).rstrip()
        for parts in zip_longest(*wrapped, fillvalue="")
    ]


def _padded(text: str, width: int, is_number: bool) -> str:
    space = " " * (width - cell_width(text))
    return space + text if is_number else text + space
