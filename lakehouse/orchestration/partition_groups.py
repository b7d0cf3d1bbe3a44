"""Groups stale partitions into runs by size; runs can skip partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

MOST_PARTITIONS = 366
"""Maximum number of partitions in one run: a year of days.

Each partition is a file, a predicate term, and a Dagster event per table that names all
partitions of the run; the event log of a run thus grows quadratically.
"""
MOST_ROWS = 20_000_000
"""Maximum number of source rows in a run of several partitions.

A run publishes a table atomically. After a crash, all rows are recomputed, and Spark stores
them on disk while the rules are evaluated.
"""


@dataclass
class _Group:
    keys: list[str] = field(default_factory=list)
    rows: float = 0.0
    last: int = -1

    def takes(self, position: int, rows: float, *, leaves_gaps: bool) -> bool:
        is_full = len(self.keys) == MOST_PARTITIONS or self.rows + rows > MOST_ROWS
        return not is_full and (leaves_gaps or position == self.last + 1)


def grouped(
    owing: Mapping[str, Collection[str]],
    keys: Sequence[str],
    rows: Mapping[str, float] | None = None,
    *,
    leaves_gaps: bool = True,
) -> list[tuple[str, ...]]:
    """Return the partitions of each run, in as few runs as possible, oldest partition first.

    All partitions of a run are stale for the same tables, so that a run recomputes no current
    partition, and a blocked table blocks all its partitions.

    :param owing: by key, the tables that must compute it.
    :param keys: all keys of the definition, in order.
    :param rows: source rows by key; None if there are few.
    :param leaves_gaps: whether a run can skip partitions.
    """
    groups: list[_Group] = []
    newest: dict[frozenset[str], _Group] = {}
    for position, key in enumerate(keys):
        if key not in owing:
            continue
        tables, key_rows = frozenset(owing[key]), rows.get(key, 0) if rows else 0
        group = newest.get(tables)
        if group is None or not group.takes(position, key_rows, leaves_gaps=leaves_gaps):
            group = newest[tables] = _Group()
            groups.append(group)
        group.keys.append(key)
        group.rows += key_rows
        group.last = position
    return [tuple(group.keys) for group in groups]


def stretches(keys: Sequence[str], chosen: Collection[str]) -> list[tuple[str, str]]:
    """Return the first and last key of each contiguous range of chosen keys.

    :param keys: all keys, in order.
    """
    chosen_keys, found = set(chosen), list[tuple[str, str]]()
    last = -1
    for position, key in enumerate(keys):
        if key not in chosen_keys:
            continue
        first = found.pop()[0] if found and position == last + 1 else key
        found.append((first, key))
        last = position
    return found
