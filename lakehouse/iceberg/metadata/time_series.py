"""Numbers of a table over time, as its kept snapshots tell them: no JVM, no scan of data."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.history import History, Snapshot

Point = tuple[datetime, float]
Series = tuple[Point, ...]
"""Values and when they were so, oldest first."""


def rows_over_time(history: History) -> Series:
    """Return how many rows readers saw from each moment on; past snapshots whose rows only a
    look at their files would tell are left out.
    """

    def rows(snapshot: Snapshot) -> float | None:
        is_told = snapshot.counted_rows is None and "total-records" in snapshot.summary
        return snapshot.rows if is_told or snapshot == history.main else None

    return _over_time(history, rows)


def bytes_over_time(history: History) -> Series:
    """Return how large the files were that readers saw from each moment on."""

    def size_bytes(snapshot: Snapshot) -> float | None:
        is_told = "total-files-size" in snapshot.summary
        return snapshot.count("total-files-size") if is_told else None

    return _over_time(history, size_bytes)


def _over_time(history: History, read: Callable[[Snapshot], float | None]) -> Series:
    points = []
    for at, snapshot_id in history.log:
        snapshot = history.snapshots.get(snapshot_id)
        value = read(snapshot) if snapshot else None
        if value is not None:
            points.append((at, float(value)))
    return tuple(points)


def continued_by(earlier: Series, later: Series) -> Series:
    """Return a series with what another knows from its own first moment on."""
    if not later:
        return earlier
    return (*(point for point in earlier if point[0] < later[0][0]), *later)


def thin_out(series: Series, most: int, pick: Callable[[Sequence[Point]], Point]) -> Series:
    """Return at most so many points, one of each of as many equal spans of time.

    :param pick: chooses among the points of a span, of which there is at least one.
    """
    if len(series) <= most:
        return series
    begin, span = series[0][0], (series[-1][0] - series[0][0]) / most
    spans: dict[int, list[Point]] = {}
    for point in series:
        number = int((point[0] - begin) / span) if span else 0
        spans.setdefault(min(number, most - 1), []).append(point)
    return tuple(pick(points) for points in spans.values())


def last_of(points: Sequence[Point]) -> Point:
    """Return the last of some points: what holds from then on."""
    return points[-1]


def greatest_of(points: Sequence[Point]) -> Point:
    """Return the point with the greatest value."""
    return max(points, key=lambda point: point[1])


def values_in_spans(
    series: Series, begin: datetime, end: datetime, spans: int, *, is_kept: bool
) -> list[float | None]:
    """Return a value for each of some equal spans of time.

    :param is_kept: whether a value holds until the next one; else it is of its moment, and the
        greatest of a span counts.
    """
    values: list[float | None] = [None] * spans
    length = (end - begin) / spans or timedelta(microseconds=1)
    for at, value in series:
        number = min(max(int((at - begin) / length), 0), spans - 1)
        known = values[number]
        values[number] = value if is_kept or known is None else max(known, value)
    if is_kept:
        for number in range(1, spans):
            if values[number] is None:
                values[number] = values[number - 1]
    return values
