"""The fewest column moves that result in the declared order."""

from bisect import bisect_left
from collections.abc import Sequence


def with_added(order: Sequence[str], declared: Sequence[str]) -> list[str]:
    """Return the order after missing columns were added, each after its declared neighbour."""
    extended = list(order)
    for number, name in enumerate(declared):
        if name not in order:
            place = extended.index(declared[number - 1]) + 1 if number else 0
            extended.insert(place, name)
    return extended


def moves(order: Sequence[str], declared: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the moves in order: a name, and the name before it (None for first).

    Columns of a longest increasing subsequence are not moved.
    """
    number = {name: at for at, name in enumerate(declared)}
    staying = _longest_rise([number[name] for name in order])
    return [
        (name, declared[at - 1] if at else None)
        for at, name in enumerate(declared)
        if at not in staying
    ]


def _longest_rise(numbers: Sequence[int]) -> set[int]:
    ends: list[int] = []
    runs: list[tuple[int, ...]] = []
    for number in numbers:
        at = bisect_left(ends, number)
        run = (*(runs[at - 1] if at else ()), number)
        ends[at : at + 1], runs[at : at + 1] = [number], [run]
    return set(runs[-1]) if runs else set()
