"""Numbers over time as lines of SVG: only their geometry; how they look is in the templates."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.time_series import Point, Series

WIDTH, HEIGHT = 460, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 12, 12, 26
SPARK_WIDTH, SPARK_HEIGHT = 110, 24
_PAD = 3
_SHOWN_DOTS = 40
"""Points up to which each has a dot of its own."""


@dataclass(frozen=True)
class Tick:
    """A mark of an axis: where it is, in pixels, and what it says."""

    at: float
    text: str


@dataclass(frozen=True)
class LinePlot:
    """A plot: the line and the area below it as paths, its points, and the marks of both
    axes.
    """

    line: str
    area: str
    dots: tuple[tuple[float, float], ...]
    values: tuple[Tick, ...]
    times: tuple[Tick, ...]


def line_plot(
    series: Series, text: Callable[[float], str], *, is_kept: bool, step: float = 1000.0
) -> LinePlot:
    """Draw a series, whose values begin at 0 on the axis.

    :param text: writes a value for people.
    :param step: from one unit that it is written in to the next, so that the axis ends at a
        round number.
    :param is_kept: whether a value holds until the next one, as rows do; else points are
        joined.
    """
    highest = _nice(max((value for _, value in series), default=0.0), step)
    begin, end = _bounds(series)
    width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(point: Point) -> tuple[float, float]:
        x = _LEFT + width * _share(point[0], begin, end)
        y = _TOP + height * (1 - point[1] / highest)
        return round(x, 1), round(y, 1)

    places = list(map(place, series))
    line = _path(places, is_kept=is_kept)
    base = _TOP + height
    area = f"{line} L{places[-1][0]} {base} L{places[0][0]} {base} Z" if places else ""
    shares = (0.0, 0.5, 1.0)
    values = (Tick(_TOP + height * (1 - share), text(highest * share)) for share in shares)
    dots = tuple(places) if len(places) <= _SHOWN_DOTS else (places[-1],)
    return LinePlot(line, area, dots, tuple(values), _times(series, begin, end))


def sparkline(series: Series, *, is_kept: bool) -> tuple[str, tuple[float, float] | None]:
    """Return the path of a series between its least and its greatest value, and where it
    ends.
    """
    if not series:
        return "", None
    values = [value for _, value in series]
    lowest, highest = min(values), max(values)
    begin, end = _bounds(series)
    places = []
    for at, value in series:
        share = (value - lowest) / (highest - lowest) if highest > lowest else 0.5
        x = _PAD + (SPARK_WIDTH - 2 * _PAD) * _share(at, begin, end)
        y = _PAD + (SPARK_HEIGHT - 2 * _PAD) * (1 - share)
        places.append((round(x, 1), round(y, 1)))
    return _path(places, is_kept=is_kept), places[-1]


def _bounds(series: Series) -> tuple[datetime, datetime]:
    if not series:
        return datetime.min, datetime.min
    return series[0][0], series[-1][0]


def _share(at: datetime, begin: datetime, end: datetime) -> float:
    """Return where a moment lies between two; the end, where they are one."""
    return (at - begin) / (end - begin) if end > begin else 1.0


def _path(places: list[tuple[float, float]], *, is_kept: bool) -> str:
    if not places:
        return ""
    (x, y), *others = places
    steps = [f"M{x} {y}"]
    for x, y in others:
        steps.append(f"H{x} V{y}" if is_kept else f"L{x} {y}")
    return " ".join(steps)


def _nice(value: float, step: float) -> float:
    """Return the next round number above a value, in its unit; half of it is one too."""
    if value <= 0:
        return 1.0
    unit: float = step ** math.floor(math.log(value, step))
    power: float = unit * 10.0 ** math.floor(math.log10(value / unit))
    for factor in (1, 2, 4, 6, 8, 10):
        if value <= factor * power * (1 + 1e-9):
            return factor * power
    return 10 * power


def _times(series: Series, begin: datetime, end: datetime) -> tuple[Tick, ...]:
    if not series:
        return ()
    form = "%Y-%m-%d" if end - begin > timedelta(days=2) else "%m-%d %H:%M"
    last = Tick(WIDTH - _RIGHT, f"{end:{form}}")
    return (Tick(_LEFT, f"{begin:{form}}"), last) if end > begin else (last,)
