"""Lineage as an SVG: tables in columns, each to the right of all its sources."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

_HEIGHT, _GAP_Y, _GAP_X, _MARGIN = 42, 14, 56, 8
_CHARACTER_WIDTH, _PADDING = 7.4, 22
_MOST_CHARACTERS = 32

Sources = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class Box:
    """A table or a feed, and the upper left corner of its box in pixels."""

    name: str
    texts: Sequence[str]
    x: float
    y: float


@dataclass(frozen=True)
class LineagePicture:
    """Boxes of equal size, and arrows as SVG paths."""

    width: float
    height: float
    box_width: float
    box_height: float
    boxes: tuple[Box, ...]
    arrows: tuple[str, ...]


def column_numbers(sources: Sources) -> dict[str, int]:
    """Return, by name, the length of the longest path from a name without sources."""
    numbers: dict[str, int] = {}
    for name in TopologicalSorter(sources).static_order():
        numbers[name] = max((numbers[one] for one in sources.get(name, ())), default=-1) + 1
    return numbers


def draw_lineage(texts: Mapping[str, Sequence[str]], sources: Sources) -> LineagePicture:
    """Draw tables and feeds, with an arrow from each source to its targets.

    :param texts: by name, the lines in its box, which are shortened; other names are ignored.
    """
    short = {name: [_shortened(text) for text in texts[name]] for name in sorted(texts)}
    longest = max(len(text) for lines in short.values() for text in lines)
    width = round(longest * _CHARACTER_WIDTH + _PADDING)
    edges = {name: sorted(short.keys() & set(sources.get(name, ()))) for name in short}
    numbers = column_numbers(edges)
    columns: list[list[str]] = [[] for _ in set(numbers.values())]
    for name in short:
        columns[numbers[name]].append(name)
    most_rows = max(map(len, columns))
    boxes: dict[str, Box] = {}
    for number, column in enumerate(columns):
        x = _MARGIN + number * (width + _GAP_X)
        # In the order of their sources, so that few arrows cross.
        column.sort(key=lambda name: min((boxes[one].y for one in edges[name]), default=0.0))
        for row, name in enumerate(column):
            y = _MARGIN + (row + (most_rows - len(column)) / 2) * (_HEIGHT + _GAP_Y)
            boxes[name] = Box(name, short[name], x, y)
    return LineagePicture(
        len(columns) * (width + _GAP_X) - _GAP_X + 2 * _MARGIN,
        most_rows * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN,
        width,
        _HEIGHT,
        tuple(boxes.values()),
        tuple(_arrow(boxes[one], boxes[name], width) for name in edges for one in edges[name]),
    )


def _arrow(source: Box, target: Box, width: float) -> str:
    """Draw a curve from the right side of a box to the left side of another."""
    x, y = source.x + width, source.y + _HEIGHT / 2
    end_y = target.y + _HEIGHT / 2
    middle_x = (x + target.x) / 2
    return f"M{x:g} {y:g}C{middle_x:g} {y:g} {middle_x:g} {end_y:g} {target.x:g} {end_y:g}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
