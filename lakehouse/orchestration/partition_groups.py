"""Partitions that are to be computed, divided into runs by their size: gaps between them are no
boundary.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

MOST_PARTITIONS = 366
"""How many partitions one run computes: a year of days.

Each is a file, a term of the predicate that the run reads and overwrites by, and an event in
Dagster for each table, which names all partitions of the run: what Dagster keeps of a run grows
with the square.
"""
MOST_ROWS = 20_000_000
"""How many rows the sources of one run have in its partitions, where it has more than one.

A run publishes a table at once, so that this is what is computed again where a run is killed, and
what Spark keeps on disk while the rows are evaluated.
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
    """Return the partitions of each run, in as few runs as their sizes allow, the one of the
    oldest partition first.

    All of a run are owed by the same tables: one that a table does not owe is not computed again
    with others, and what holds a table back is looked at for all partitions that read it.

    :param owing: by key, the tables that are to compute it.
    :param keys: all keys of the definition, in order.
    :param rows: how many rows the sources have for each key; none where they are few.
    :param leaves_gaps: whether a run may leave out partitions between its first and its last.
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
    """Return the first and the last of each stretch of chosen keys that has no gap.

    :param keys: all keys that there may be, in order.
    """
    wanted, found = set(chosen), list[tuple[str, str]]()
    last = -1
    for position, key in enumerate(keys):
        if key not in wanted:
            continue
        first = found.pop()[0] if found and position == last + 1 else key
        found.append((first, key))
        last = position
    return found
