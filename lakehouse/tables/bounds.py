"""Bounds of rule values, and the levels of a rule's result."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Literal

from lakehouse.errors import DeclarationError

Number = int | float | Decimal
Outside = tuple[Number | None, Number | None]
"""Narrower bounds within those of a rule; values outside of them cause a warning."""
Level = Literal["holds", "warns", "fails"]
"""The result of a rule: passed, warn, or block the publish."""


@dataclass(frozen=True)
class Bounds:
    """An interval from `low` to `high`, both inclusive; either may be open."""

    low: Number | None = None
    high: Number | None = None

    def contains(self, value: Number) -> bool:
        """Return whether a value is within the bounds; NaN is not."""
        return (self.low is None or value >= _as_of_kind(self.low, value)) and (
            self.high is None or value <= _as_of_kind(self.high, value)
        )

    def __str__(self) -> str:
        return bounds_text(self.low, self.high)


def bounds_of(what: str, low: Number | None, high: Number | None) -> Bounds:
    """Return bounds with at least one closed end; `low` must not exceed `high`."""
    if (low is None and high is None) or (
        low is not None and high is not None and not low <= _as_of_kind(high, low)
    ):
        raise DeclarationError(
            f"{what} is from {low} to {high}; expected low <= high, or one of them."
        )
    return Bounds(low, high)


def _as_of_kind(bound: Number, value: Number) -> Number:
    """Convert a bound to the number type of a value. Python compares the exact binary value of
    a float such as 0.3 with a `Decimal`.
    """
    if isinstance(value, Decimal) and isinstance(bound, float):
        return Decimal(str(bound))
    if isinstance(value, float) and isinstance(bound, Decimal):
        return float(bound)
    return bound


def bounds_text(low: object, high: object) -> str:
    return " and ".join(
        f"{word} {bound}"
        for word, bound in (("at least", low), ("at most", high))
        if bound is not None
    )


def hours(span: timedelta) -> float:
    return span.total_seconds() / 3600
