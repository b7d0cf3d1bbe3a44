"""Spans of a column's values, each half-open: joined where they touch, and as the predicate of
the rows within.
"""

from collections.abc import Iterable
from datetime import date, datetime

from lakehouse.tables.quoting import identifier, typed

Bound = date | datetime | int
Span = tuple[Bound, Bound]
"""The first value of a span, and the first after it."""


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, those that touch or overlap made one."""
    merged: list[Span] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:  # type: ignore[operator]
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def within(column: str, spans: Iterable[Span], column_type: str = "") -> list[str]:
    """Return for each span the SQL predicate of the rows whose column lies in it.

    :param column_type: as a declaration names it; left out, that of the bounds.
    """
    name = identifier(column)
    return [
        f"({name} >= {typed(low, column_type)} AND {name} < {typed(high, column_type)})"
        for low, high in spans
    ]


def text(bound: Bound) -> str:
    """Write a bound of a partition as text that sorts and reads back."""
    return str(bound) if isinstance(bound, int) else bound.isoformat()


def bound(text: str) -> Bound:
    """Read a bound of a partition back from its text."""
    if text.lstrip("-").isdigit():
        return int(text)
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
