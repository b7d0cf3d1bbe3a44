"""Values of a daily metric, and outliers in them by robust statistics."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import expm1, log1p, sqrt
from statistics import median


@dataclass(frozen=True)
class Point:
    """A value of a metric, and its day in the table's time zone."""

    day: date
    value: float


@dataclass(frozen=True)
class Kind:
    """How the values of a metric are compared.

    `by_ratio` is for counts, where half is as far away as double. `high` and `low` state which
    side is an anomaly. `low_from` is an upper limit for low anomalies, such as 0 for a value
    that can still grow during the day.
    """

    by_ratio: bool = False
    high: bool = True
    low: bool = True
    low_from: float | None = None
    is_fraction: bool = False

    def scaled(self, value: float) -> float:
        """Return a value on the comparison scale."""
        return log1p(max(value, 0.0)) if self.by_ratio else value

    def unscaled(self, value: float) -> float:
        """Return the inverse of `scaled`."""
        return expm1(value) if self.by_ratio else value


COUNT = Kind(by_ratio=True)
"""Rows of an ingest: too few are as suspicious as too many."""
FRACTION = Kind(low=False, is_fraction=True)
"""Fractions of invalid rows: a lower value is an improvement."""
GROWTH = Kind(low_from=0.0)
"""Rows that a table gained during an incomplete day; low values are reported only if negative.
"""


@dataclass(frozen=True)
class Evaluation:
    """The expected range of a value, and the days in `past` that it is compared with."""

    point: Point
    expected: float
    least: float
    most: float
    past: tuple[Point, ...]
    same_weekday: bool
    """Whether `past` contains only the same weekday; all days if there were too few."""
    is_low: bool
    is_high: bool

    @property
    def is_anomaly(self) -> bool:
        """Whether the value is outside of the expected range."""
        return self.is_low or self.is_high


NORMAL = 1.4826
"""Scales the median absolute deviation to the standard deviation of a normal distribution: 1 /
Φ⁻¹(3/4), as in R's `mad` (Rousseeuw and Croux, Alternatives to the Median Absolute Deviation,
1993).
"""
FAR = 3.5
"""The distance from the expected value, in spreads, that makes an anomaly (Iglewicz and
Hoaglin, How to Detect and Handle Outliers, 1993; also in the NIST handbook of statistics,
1.3.5.17).
"""
WINDOW_DAYS = 63
"""The length of the history: nine weeks, which contain eight of each weekday."""
LEAST_DAYS = 8
"""The minimum number of days with a value."""
LEAST_SPAN_DAYS = 14
"""The minimum age of the history in days."""
LEAST_WEEKS = 3
"""The minimum number of values of a weekday, each within a complete week, to use its effect;
with fewer, all weekdays are treated equally.
"""
UNSURE_STEPS, UNSURE_WEEKS = 5, 1
"""How much few steps and few weeks widen the spread; tuned on the 200 clean series of the test.
"""
LEVEL_DAYS = 14
"""The days that determine the level: a lasting change is the new normal after half of them."""
LEAST_LEVEL_DAYS = 3
LEAST_RATIO = 0.025
"""The minimum spread of ratios: a deviation below 8 % is not an anomaly."""
LEAST_FRACTION = 0.0025
"""The minimum spread of fractions: a deviation below 0.8 % of the rows is not an anomaly."""
_WEEK_AROUND = 3


def evaluate(
    past: Sequence[Point], newest: Point, kind: Kind, *, of_rows: int | None = None
) -> Evaluation | None:
    """Compare a value with earlier days; None if there are too few.

    :param past: earlier values, oldest first; the last one of each day is used.
    :param of_rows: the row count that a fraction refers to; a fraction of few rows is
        uncertain.
    """
    days = _days(past, newest.day)
    if len(days) < LEAST_DAYS or newest.day - min(days) < timedelta(days=LEAST_SPAN_DAYS):
        return None
    values = {day: kind.scaled(value) for day, value in days.items()}
    weekday = newest.day.weekday()
    differences = _differences(values)
    if weekday not in differences:
        differences = {}
    effects = {other: median(of_weekday) for other, of_weekday in differences.items()}
    flat = [value - effects.get(day.weekday(), 0.0) for day, value in values.items()]
    ahead = [flat[at] - _level(flat[:at]) for at in range(LEAST_LEVEL_DAYS, len(flat))]
    # With a trend, every day deviates from the level in the same direction, which is expected.
    drift = median(ahead)
    usual = NORMAL * median(abs(step - drift) for step in ahead)
    expected = _level(flat) + drift + effects.get(weekday, 0.0)
    spread = max(
        usual * _uncertainty(len(ahead), len(differences.get(weekday, ()))),
        _least_spread(kind, kind.unscaled(expected), days, of_rows),
    )
    least, most = expected - FAR * spread, expected + FAR * spread
    if not effects:
        least, most = _beyond(values.values(), least, most)
    scaled = (expected, least, most)
    return _evaluation(days, newest, kind, scaled, same_weekday=bool(effects))


def _evaluation(
    days: Mapping[date, float],
    newest: Point,
    kind: Kind,
    scaled: tuple[float, float, float],
    *,
    same_weekday: bool,
) -> Evaluation:
    expected, least, most = map(kind.unscaled, scaled)
    past = [Point(day, value) for day, value in days.items()]
    if same_weekday:
        past = [point for point in past if point.day.weekday() == newest.day.weekday()]
    is_below = newest.value < least and (kind.low_from is None or newest.value < kind.low_from)
    return Evaluation(
        newest,
        expected,
        least,
        most,
        tuple(past),
        same_weekday,
        is_low=kind.low and is_below,
        is_high=kind.high and newest.value > most,
    )


def _days(past: Sequence[Point], today: date) -> dict[date, float]:
    since = today - timedelta(days=WINDOW_DAYS)
    last = {point.day: point.value for point in past if since <= point.day < today}
    return dict(sorted(last.items()))


def _differences(values: Mapping[date, float]) -> dict[int, list[float]]:
    """Return, by weekday, its deviations from the median of the surrounding week; empty with
    too few weeks.

    A week is complete if it has all weekdays that the history usually has.
    """
    weekdays = Counter(day.weekday() for day in values)
    usual = {weekday for weekday, weeks in weekdays.items() if weeks >= LEAST_WEEKS}
    differences: dict[int, list[float]] = {}
    for day, value in values.items():
        week = _week_around(day, values, usual)
        if day.weekday() in usual and len(week) == len(usual):
            differences.setdefault(day.weekday(), []).append(value - median(week))
    return {
        weekday: of_weekday
        for weekday, of_weekday in differences.items()
        if len(of_weekday) >= LEAST_WEEKS
    }


def _week_around(
    day: date, values: Mapping[date, float], weekdays: Collection[int]
) -> list[float]:
    week = []
    for step in range(-_WEEK_AROUND, _WEEK_AROUND + 1):
        other = day + timedelta(days=step)
        if other in values and other.weekday() in weekdays:
            week.append(values[other])
    return week


def _uncertainty(steps: int, weeks: int) -> float:
    """Return the factor by which few steps and few weeks widen the spread."""
    return (1 + UNSURE_STEPS / steps) * (1 + UNSURE_WEEKS / weeks if weeks else 1.0)


def _beyond(seen: Collection[float], least: float, most: float) -> tuple[float, float]:
    """Return bounds that extend the observed range by half on both sides.

    Without weekday effects, a quiet Sunday is a normal day; only unseen values are anomalies.
    """
    low, high = min(seen), max(seen)
    return min(least, low - (high - low) / 2), max(most, high + (high - low) / 2)


def _level(flat: Sequence[float]) -> float:
    return median(flat[-LEVEL_DAYS:])


def _least_spread(
    kind: Kind, expected: float, days: Mapping[date, float], of_rows: int | None
) -> float:
    """Return the minimum spread, even for constant values: rounding, or sampling of few rows."""
    if kind.by_ratio:
        # A difference of one in a small count.
        return max(LEAST_RATIO, 1 / (1 + max(expected, 0.0)))
    if not kind.is_fraction:
        return max(1.0, LEAST_RATIO * median(map(abs, days.values())))
    if not of_rows or of_rows == 1:
        return LEAST_FRACTION if not of_rows else 0.5
    share = min(max(expected, 1 / of_rows), 1 - 1 / of_rows)
    # The standard error of a fraction of that many rows.
    return max(LEAST_FRACTION, sqrt(share * (1 - share) / of_rows))
