"""Half-open ranges of a column's values: merging, SQL predicates and text form."""

from collections.abc import Iterable
from datetime import date, datetime

from lakehouse.tables.quoting import identifier, typed

Bound = date | datetime | int
ValueRange = tuple[Bound, Bound]
"""The first value of a range, and the first value after it."""


def joined(ranges: Iterable[ValueRange]) -> list[ValueRange]:
    """Merge ranges that touch or overlap; the result is sorted."""
    merged: list[ValueRange] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:  # type: ignore[operator]
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def within(column: str, ranges: Iterable[ValueRange], column_type: str = "") -> list[str]:
    """Return the SQL predicate of each range.

    :param column_type: the declared type; defaults to the type of the bounds.
    """
    name = identifier(column)
    return [
        f"({name} >= {typed(low, column_type)} AND {name} < {typed(high, column_type)})"
        for low, high in ranges
    ]


def text(bound: Bound) -> str:
    """Format a bound as text that sorts and can be parsed."""
    return str(bound) if isinstance(bound, int) else bound.isoformat()


def bound(text: str) -> Bound:
    """Parse a bound from its text."""
    if text.lstrip("-").isdigit():
        return int(text)
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
