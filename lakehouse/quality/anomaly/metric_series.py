"""The values of a metric, how they are compared, and what they suggest of the newest."""

from dataclasses import dataclass
from datetime import date
from math import expm1, log1p


@dataclass(frozen=True)
class Point:
    """A value of a metric, and its day where the table is at home."""

    day: date
    value: float


@dataclass(frozen=True)
class Kind:
    """How the values of a metric are compared.

    `by_ratio` is for counts, where half as much is as far away as twice as much. `high` and
    `low` say which side is worth telling; `low_from` is what a low value must be below, such as
    0 for what may yet grow in the day.
    """

    by_ratio: bool = False
    high: bool = True
    low: bool = True
    low_from: float | None = None
    is_fraction: bool = False

    def scaled(self, value: float) -> float:
        """Return a value on the scale where distances are compared."""
        return log1p(max(value, 0.0)) if self.by_ratio else value

    def unscaled(self, value: float) -> float:
        """Return what `scaled` was given."""
        return expm1(value) if self.by_ratio else value


COUNT = Kind(by_ratio=True)
"""Rows of an ingest: too few are as telling as too many."""
FRACTION = Kind(low=False, is_fraction=True)
"""Shares of rows that something is wrong with: less of it is good news."""
GROWTH = Kind(low_from=0.0)
"""Rows that a table grew by in a day that may not be over: too few are only told where it
shrank.
"""


@dataclass(frozen=True)
class Evaluation:
    """What was to be expected of a value: from `least` to `most`; `past` are the days that it
    is compared with.
    """

    point: Point
    expected: float
    least: float
    most: float
    past: tuple[Point, ...]
    same_weekday: bool
    """Whether `past` are the days of the same weekday; all days where there were too few of
    those.
    """
    is_low: bool
    is_high: bool

    @property
    def is_anomaly(self) -> bool:
        """Whether the value is outside."""
        return self.is_low or self.is_high
