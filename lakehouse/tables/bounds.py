"""How much of something is tolerated: bounds of a value, and what it means to lie outside of
them.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Literal

from lakehouse.errors import DeclarationError

Number = int | float | Decimal
Outside = tuple[Number | None, Number | None]
"""Bounds within those of a rule, outside of which people are told."""
Level = Literal["holds", "warns", "fails"]
"""What came of a rule: nothing is to be said, people are told, or nothing may be published."""


@dataclass(frozen=True)
class Bounds:
    """From `low` to `high`, both included, either one open."""

    low: Number | None = None
    high: Number | None = None

    def hold(self, value: Number) -> bool:
        """Whether a value lies within; NaN does not."""
        return (self.low is None or value >= _as_of_kind(self.low, value)) and (
            self.high is None or value <= _as_of_kind(self.high, value)
        )

    def __str__(self) -> str:
        return bounds_text(self.low, self.high)


def bounds_of(what: str, low: Number | None, high: Number | None) -> Bounds:
    """Return bounds that a value can lie in, of which at least one is closed."""
    if (low is None and high is None) or (
        low is not None and high is not None and not low <= _as_of_kind(high, low)
    ):
        raise DeclarationError(
            f"{what} is from {low} to {high}; expected low <= high, or one of them."
        )
    return Bounds(low, high)


def _as_of_kind(bound: Number, value: Number) -> Number:
    """Return a bound as the kind of number that a value is, as it was written: a float of 0.3 is
    less than that by a little, which Python sees where it compares one with a `Decimal`.
    """
    if isinstance(value, Decimal) and isinstance(bound, float):
        return Decimal(str(bound))
    if isinstance(value, float) and isinstance(bound, Decimal):
        return float(bound)
    return bound


def bounds_text(low: object, high: object) -> str:
    """Say bounds in words."""
    return " and ".join(
        f"{word} {bound}"
        for word, bound in (("at least", low), ("at most", high))
        if bound is not None
    )


def hours(span: timedelta) -> float:
    """Return how many hours a span of time is."""
    return span.total_seconds() / 3600
