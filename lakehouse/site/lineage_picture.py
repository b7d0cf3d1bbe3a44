"""Which table is computed from which, as a picture: tables in columns, each to the right of all
that it is computed from.

The same tables give the same picture: all that is sorted is sorted by name in the end.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 6
_BOX_HEIGHT, _GAP_Y, _GAP_X, _MARGIN = 42, 14, 56, 8
_BEND_HEIGHT = 10
_CHARACTER, _PADDING, _NARROWEST = 7.4, 22, 96
_MOST_CHARACTERS = 32


@dataclass(frozen=True)
class Node:
    """What a box stands for: a table, or a feed. `key` tells it from all others."""

    key: str
    name: str
    group: str
    href: str = ""
    is_current: bool = False

    @property
    def label(self) -> str:
        """The name, cut where it is too long for a box."""
        if len(self.name) <= _MOST_CHARACTERS:
            return self.name
        return f"{self.name[: _MOST_CHARACTERS - 1]}…"


@dataclass(frozen=True)
class Box:
    """Where a node stands, in pixels."""

    node: Node
    x: float
    y: float
    width: float
    height: float = _BOX_HEIGHT


@dataclass(frozen=True)
class LineagePicture:
    """Boxes, and the arrows between them as paths, in a frame of that size."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[str, ...]


@dataclass(frozen=True)
class _Bend:
    """Where an arrow passes a column that it does not end in."""

    begin: str
    end: str
    column: int


_Place = str | _Bend


def related(
    name: str, sources: Mapping[str, Collection[str]], most: int
) -> tuple[set[str], bool]:
    """Return a table with all that it is computed from and all that is computed from it;
    where these are more than `most`, those next to it, and that some are left out.
    """
    targets: dict[str, set[str]] = {}
    for target, names in sources.items():
        for source in names:
            targets.setdefault(source, set()).add(target)
    around = _reached(name, sources) | _reached(name, targets)
    if len(around) <= most:
        return around, False
    nearest = sorted({*sources.get(name, ()), *targets.get(name, ())})[: most - 1]
    return {name, *nearest}, True


def _reached(name: str, steps: Mapping[str, Collection[str]]) -> set[str]:
    reached, waiting = {name}, [name]
    while waiting:
        following = set(steps.get(waiting.pop(), ())) - reached
        reached |= following
        waiting += following
    return reached


def draw_lineage(
    nodes: Iterable[Node], sources: Mapping[str, Collection[str]]
) -> LineagePicture:
    """Draw nodes, and an arrow from each source to what is computed from it.

    :param sources: by key of a node the keys of others; those that are none are passed over.
    """
    known = {node.key: node for node in nodes}
    edges = []
    for target, names in sorted(sources.items()):
        for source in sorted(names):
            if source in known and target in known and source != target:
                edges.append((source, target))
    column_of = column_numbers(known, edges)
    chains = [_chain(source, target, column_of) for source, target in edges]
    columns = _ordered(_columns(known, column_of, chains), chains)
    return _picture(columns, known, chains)


def column_numbers(keys: Iterable[str], edges: Collection[tuple[str, str]]) -> dict[str, int]:
    """Return by key how many steps its longest way from a key without sources has.

    An edge that closes a circle is passed over, since no column were right of itself.
    """
    parents: dict[str, list[str]] = {key: [] for key in sorted(keys)}
    for source, target in edges:
        parents[target].append(source)
    numbers: dict[str, int] = {}
    for key in parents:
        _number(key, parents, numbers)
    return numbers


def _number(key: str, parents: Mapping[str, Sequence[str]], numbers: dict[str, int]) -> None:
    """Number a key after all that it is computed from; without recursion, since a chain may be
    long.
    """
    waiting, open_keys = [key], set[str]()
    while waiting:
        current = waiting[-1]
        open_keys.add(current)
        unknown = [
            parent
            for parent in parents[current]
            if parent not in numbers and parent not in open_keys
        ]
        if unknown and current not in numbers:
            waiting.append(unknown[0])
            continue
        waiting.pop()
        open_keys.discard(current)
        before = [numbers[parent] for parent in parents[current] if parent in numbers]
        numbers.setdefault(current, max(before, default=-1) + 1)


def _chain(source: str, target: str, column_of: Mapping[str, int]) -> tuple[_Place, ...]:
    """Return the places of an arrow: a bend in each column between its ends."""
    between = range(column_of[source] + 1, column_of[target])
    return (source, *(_Bend(source, target, column) for column in between), target)


def _columns(
    known: Collection[str], column_of: Mapping[str, int], chains: Iterable[Sequence[_Place]]
) -> list[list[_Place]]:
    columns: list[list[_Place]] = [[] for _ in range(max(column_of.values(), default=-1) + 1)]
    for key in sorted(known):
        columns[column_of[key]].append(key)
    for chain in chains:
        for place in chain:
            if isinstance(place, _Bend):
                columns[place.column].append(place)
    return columns


def _ordered(
    columns: list[list[_Place]], chains: Iterable[Sequence[_Place]]
) -> list[list[_Place]]:
    """Order each column by where its neighbours stand, from both sides in turn, so that few
    arrows cross.
    """
    before: dict[_Place, list[_Place]] = {}
    after: dict[_Place, list[_Place]] = {}
    for chain in chains:
        for left, right in pairwise(chain):
            before.setdefault(right, []).append(left)
            after.setdefault(left, []).append(right)
    for sweep in range(_SWEEPS):
        neighbours = after if sweep % 2 else before
        numbers = range(len(columns))
        for number in reversed(numbers) if sweep % 2 else numbers:
            _sort(columns, number, neighbours)
    return columns


def _sort(
    columns: list[list[_Place]], number: int, neighbours: Mapping[_Place, list[_Place]]
) -> None:
    position: dict[_Place, float] = {}
    for column in columns:
        for at, place in enumerate(column):
            position[place] = (at + 0.5) / len(column)

    def middle(place: _Place) -> float:
        places = [position[other] for other in neighbours.get(place, ())]
        return sum(places) / len(places) if places else position[place]

    columns[number].sort(key=middle)


def _picture(
    columns: Sequence[Sequence[_Place]],
    known: Mapping[str, Node],
    chains: Iterable[Sequence[_Place]],
) -> LineagePicture:
    heights = [sum(map(_height, column)) + _GAP_Y * (len(column) - 1) for column in columns]
    height = max(heights, default=0) + 2 * _MARGIN
    boxes: dict[_Place, Box] = {}
    x = float(_MARGIN)
    for column, column_height in zip(columns, heights, strict=True):
        width = max(map(_width, (known[place] for place in column if isinstance(place, str))))
        y = (height - column_height) / 2
        for place in column:
            node = known[place] if isinstance(place, str) else Node("", "", "")
            boxes[place] = Box(node, round(x, 1), round(y, 1), round(width, 1), _height(place))
            y += _height(place) + _GAP_Y
        x += width + _GAP_X
    shown = tuple(box for place, box in boxes.items() if isinstance(place, str))
    arrows = tuple(_arrow([boxes[place] for place in chain]) for chain in chains)
    width = x - _GAP_X + _MARGIN if columns else 2 * _MARGIN
    return LineagePicture(round(width, 1), round(height, 1), shown, arrows)


def _height(place: _Place) -> float:
    return _BOX_HEIGHT if isinstance(place, str) else _BEND_HEIGHT


def _width(node: Node) -> float:
    longest = max(len(node.label), len(node.group[:_MOST_CHARACTERS]))
    return max(_NARROWEST, longest * _CHARACTER + _PADDING)


def _arrow(boxes: Sequence[Box]) -> str:
    """Draw from the right side of the first box, through the bends, to the left side of the
    last.
    """
    first, last = boxes[0], boxes[-1]
    x, y = first.x + first.width, first.y + first.height / 2
    steps = [f"M{x:g} {y:g}"]
    for box in boxes[1:]:
        left, middle = box.x, box.y + box.height / 2
        half = (x + left) / 2
        steps.append(f"C{half:g} {y:g} {half:g} {middle:g} {left:g} {middle:g}")
        x, y = left, middle
        if box is not last:
            x = box.x + box.width
            steps.append(f"H{x:g}")
    return " ".join(steps)
