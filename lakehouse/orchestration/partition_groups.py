"""Partitions that are to be computed, divided into runs by their size: gaps between them are no
boundary.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

MOST_PARTITIONS = 366
"""How many partitions one run computes: a year of days.

Each is a file that a task of Spark holds open, a term of the predicate that the run reads and
overwrites by, and an event in Dagster for each table, which names all partitions of the run.
"""
MOST_ROWS = 20_000_000
"""How many rows the sources of one run have in its partitions, where it has more than one.

A run publishes a table at once, so that this is what is computed again where a run is killed, and
what Spark keeps on disk while the rows are evaluated.
"""


def grouped(
    owing: Mapping[str, Collection[str]],
    keys: Sequence[str],
    rows: Mapping[str, float] | None = None,
    *,
    leaves_gaps: bool = True,
) -> Iterator[tuple[str, ...]]:
    """Yield the partitions of each run, in order, in as few runs as their sizes allow.

    :param owing: by key, the tables that are to compute it.
    :param keys: all keys of the definition, in order.
    :param rows: how many rows the sources have for each key; none where they are few.
    :param leaves_gaps: whether a run may leave partitions out between its first and its last,
        and compute some for one table and not for another.
    """
    group: list[str] = []
    group_rows, last = 0.0, -1
    for position, key in enumerate(keys):
        if key not in owing:
            continue
        key_rows = rows.get(key, 0) if rows else 0
        is_full = len(group) == MOST_PARTITIONS or group_rows + key_rows > MOST_ROWS
        is_next = position == last + 1 and bool(group) and owing[key] == owing[group[-1]]
        if group and (is_full or not (leaves_gaps or is_next)):
            yield tuple(group)
            group, group_rows = [], 0
        group.append(key)
        group_rows, last = group_rows + key_rows, position
    if group:
        yield tuple(group)


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
