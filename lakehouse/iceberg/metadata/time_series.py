"""Metrics of a table over time, from its retained snapshots: no JVM, no data scan."""

from collections.abc import Callable
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.snapshots import History, Snapshot

Point = tuple[datetime, float]
Series = tuple[Point, ...]
"""Timestamps and values, oldest first."""


def rows_over_time(history: History) -> Series:
    """Return the number of rows after each commit on main, without counting rows of files."""

    def rows(snapshot: Snapshot) -> float | None:
        is_available = snapshot.count_live_rows is None and "total-records" in snapshot.summary
        return snapshot.rows if is_available or snapshot == history.main else None

    return _over_time(history, rows)


def bytes_over_time(history: History) -> Series:
    """Return the size of the table's files after each commit on main."""

    def size_bytes(snapshot: Snapshot) -> float | None:
        is_available = "total-files-size" in snapshot.summary
        return snapshot.count("total-files-size") if is_available else None

    return _over_time(history, size_bytes)


def _over_time(history: History, read: Callable[[Snapshot], float | None]) -> Series:
    points = []
    for at, snapshot_id in history.log:
        snapshot = history.snapshots.get(snapshot_id)
        value = read(snapshot) if snapshot else None
        if value is not None:
            points.append((at, float(value)))
    return tuple(points)


def values_per_interval(
    series: Series, start: datetime, end: datetime, intervals: int, *, is_kept: bool
) -> list[float | None]:
    """Return a value for each of some equal time intervals.

    :param is_kept: whether a value applies until the next one; otherwise the greatest is used.
    """
    values: list[float | None] = [None] * intervals
    length = (end - start) / intervals or timedelta(microseconds=1)
    for at, value in series:
        number = min(max(int((at - start) / length), 0), intervals - 1)
        known = values[number]
        values[number] = value if is_kept or known is None else max(known, value)
    if is_kept:
        for number in range(1, intervals):
            if values[number] is None:
                values[number] = values[number - 1]
    return values
