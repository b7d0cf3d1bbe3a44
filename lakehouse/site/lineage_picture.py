"""Lineage as an SVG: tables in columns, each to the right of all its sources."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from statistics import fmean

_SWEEPS = 3
_BOX_HEIGHT, _BEND_HEIGHT, _GAP_Y, _GAP_X, _MARGIN = 42, 10, 14, 56, 8
_CHARACTER_WIDTH, _PADDING, _LEAST_WIDTH = 7.4, 22, 96
_MOST_CHARACTERS = 32

Sources = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class Node:
    """A table or a feed, identified by `key`."""

    key: str
    name: str
    group: str
    href: str = ""
    is_current: bool = False

    @property
    def label(self) -> str:
        """The name, shortened to the width of a box."""
        is_short = len(self.name) <= _MOST_CHARACTERS
        return self.name if is_short else f"{self.name[: _MOST_CHARACTERS - 1]}…"


@dataclass(frozen=True)
class Box:
    """The position of a node, in pixels; None is a place that an arrow passes."""

    node: Node | None
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class LineagePicture:
    """Boxes, and arrows as SVG paths."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[str, ...]


def related(name: str, sources: Sources, most: int) -> tuple[set[str], bool]:
    """Return a table with everything upstream and downstream, or, if these are more than `most`,
    with its direct neighbours, and whether some were left out.
    """
    targets: dict[str, set[str]] = defaultdict(set)
    for target, names in sources.items():
        for source in names:
            targets[source].add(target)
    related_names = _reachable(name, sources) | _reachable(name, targets)
    if len(related_names) <= most:
        return related_names, False
    nearest = sorted({*sources.get(name, ()), *targets.get(name, ())})[: most - 1]
    return {name, *nearest}, True


def _reachable(name: str, edges: Sources) -> set[str]:
    reached, waiting = {name}, [name]
    while waiting:
        following = set(edges.get(waiting.pop(), ())) - reached
        reached |= following
        waiting += following
    return reached


def column_numbers(sources: Sources) -> dict[str, int]:
    """Return, by key, the length of the longest path from a key without sources."""
    numbers: dict[str, int] = {}
    for key in TopologicalSorter(sources).static_order():
        numbers[key] = max((numbers[name] for name in sources.get(key, ())), default=-1) + 1
    return numbers


def draw_lineage(nodes: Iterable[Node], sources: Sources) -> LineagePicture:
    """Draw nodes, with an arrow from each source to its targets; other keys are ignored."""
    known = {node.key: node for node in sorted(nodes, key=lambda node: node.key)}
    edges = {key: sorted(known.keys() & set(sources.get(key, ()))) for key in known}
    number_of = column_numbers(edges)
    columns: list[list[str]] = [[] for _ in range(max(number_of.values(), default=-1) + 1)]
    for key in known:
        columns[number_of[key]].append(key)
    chains = []
    for target, names in edges.items():
        for source in names:
            # An arrow that skips columns gets a place in each, and so passes no box.
            passed = range(number_of[source] + 1, number_of[target])
            bends = [f"{source} → {target} {number}" for number in passed]
            for number, bend in zip(passed, bends, strict=True):
                columns[number].append(bend)
            chains.append([source, *bends, target])
    _sort_columns(columns, chains)
    boxes, width, height = _place(columns, known)
    arrows = tuple(_arrow([boxes[key] for key in chain]) for chain in chains)
    shown = tuple(box for box in boxes.values() if box.node)
    return LineagePicture(width, height, shown, arrows)


def _sort_columns(columns: Sequence[list[str]], chains: Iterable[Sequence[str]]) -> None:
    """Sort each column by the position of its neighbours, so that few arrows cross."""
    before: dict[str, list[str]] = defaultdict(list)
    after: dict[str, list[str]] = defaultdict(list)
    for chain in chains:
        for left, right in pairwise(chain):
            before[right].append(left)
            after[left].append(right)
    position: dict[str, float] = {}
    for column in columns:
        _sort(column, position, {})
    for _ in range(_SWEEPS):
        for column in columns:
            _sort(column, position, before)
        for column in reversed(columns):
            _sort(column, position, after)


def _sort(
    column: list[str], position: dict[str, float], neighbours: Mapping[str, Sequence[str]]
) -> None:
    def middle(key: str) -> float:
        places = [position[name] for name in neighbours.get(key, ())]
        return fmean(places) if places else position.get(key, 0.0)

    column.sort(key=middle)
    position.update({key: (at + 0.5) / len(column) for at, key in enumerate(column)})


def _place(
    columns: Sequence[Sequence[str]], known: Mapping[str, Node]
) -> tuple[dict[str, Box], float, float]:
    """Return the boxes by key, and the width and height of the picture."""
    heights = [
        sum(_BOX_HEIGHT if key in known else _BEND_HEIGHT for key in column)
        + _GAP_Y * (len(column) - 1)
        for column in columns
    ]
    total_height = max(heights, default=0) + 2 * _MARGIN
    boxes: dict[str, Box] = {}
    x = float(_MARGIN)
    for column, column_height in zip(columns, heights, strict=True):
        width = max(_width(known[key]) for key in column if key in known)
        y = (total_height - column_height) / 2
        for key in column:
            height = _BOX_HEIGHT if key in known else _BEND_HEIGHT
            boxes[key] = Box(known.get(key), round(x, 1), round(y, 1), round(width, 1), height)
            y += height + _GAP_Y
        x += width + _GAP_X
    return boxes, round(max(x - _GAP_X, 0) + _MARGIN, 1), round(total_height, 1)


def _width(node: Node) -> float:
    longest = max(len(node.label), len(node.group[:_MOST_CHARACTERS]))
    return max(_LEAST_WIDTH, longest * _CHARACTER_WIDTH + _PADDING)


def _arrow(boxes: Sequence[Box]) -> str:
    """Draw curves from the right side of each box to the left side of the next."""
    x, y = boxes[0].x + boxes[0].width, boxes[0].y + boxes[0].height / 2
    steps = [f"M{x:g} {y:g}"]
    for box in boxes[1:]:
        middle_x, next_y = (x + box.x) / 2, box.y + box.height / 2
        steps.append(f"C{middle_x:g} {y:g} {middle_x:g} {next_y:g} {box.x:g} {next_y:g}")
        x, y = box.x + box.width, next_y
        if box.node is None:
            steps.append(f"H{x:g}")
    return " ".join(steps)
