"""Values of a metric, how they are compared, and the result."""

from dataclasses import dataclass
from datetime import date
from math import expm1, log1p


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
