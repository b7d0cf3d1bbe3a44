"""Half-open ranges of a column's values, and all partitions of an asset as such ranges."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from lakehouse.tables.quoting import identifier, in_values, literal, literals, typed

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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class AllPartitions:
    """All defined partitions: merged ranges of a column's values, or values as text."""

    merged_ranges: tuple[ValueRange, ...] = ()
    values: frozenset[str] = frozenset()

    def has(self, value: Bound | str | None) -> bool:
        """Whether any row of a value is in a partition; a day is if any of its timestamps is."""
        if value is None or not self.merged_ranges:
            return value is not None and str(value) in self.values
        return bool(clip_to_ranges(value, self.merged_ranges))

    def has_all_of(self, value: Bound | str | None) -> bool:
        """Whether all rows of a value are in partitions; a day can overlap two partitions."""
        if value is None or not self.merged_ranges:
            return self.has(value)
        return clip_to_ranges(value, self.merged_ranges) == [
            value_range_of(value, self.merged_ranges[0][0])
        ]

    def has_between(self, low: Any, high: Any) -> bool:
        """Whether partitions cover all values from `low` to `high` without a gap."""
        is_in_one = any(
            clip_to_ranges(low, [merged]) and clip_to_ranges(high, [merged])
            for merged in self.merged_ranges
        )
        return is_in_one and self.has_all_of(low) and self.has_all_of(high)

    def outside(self, column: str) -> str:
        """Return the SQL predicate of the rows that are in no partition."""
        if self.merged_ranges:
            inside = " OR ".join(within(column, self.merged_ranges))
        elif self.values:
            inside = f"{identifier(column)} IN {literals(sorted(self.values))}"
        else:
            inside = "false"
        # Iceberg cannot skip files by a predicate with `coalesce`.
        return f"({identifier(column)} IS NULL OR NOT ({inside}))"

    def values_of(self, texts: Iterable[str | None]) -> set[Any]:
        """Parse values from text; values of a former type of the column are dropped."""
        return {
            value
            for text in texts
            if text is not None and (value := self._read(text)) is not None
        }

    def _read(self, text: str) -> Any:
        if not self.merged_ranges:
            return text
        try:
            value = bound(text)
        except ValueError:
            return None
        is_alike = isinstance(value, int) == isinstance(self.merged_ranges[0][0], int)
        return value if is_alike else None


def value_range_of(value: Any, bound: Bound) -> ValueRange:
    """Return the half-open range that a value represents, in the type of `bound`; days in UTC."""
    if isinstance(bound, datetime):
        if not isinstance(value, datetime):
            begin = datetime.combine(value, time(), UTC)
            return begin, _after(begin, timedelta(days=1))
        return value, _after(value, timedelta(microseconds=1))
    if isinstance(bound, date):
        day = value.date() if isinstance(value, datetime) else value
        return day, _after(day, timedelta(days=1))
    return value, value + 1


def rows_of(column: str, values: Collection[Any], *, is_timestamp: bool) -> str:
    """Return the SQL predicate of the rows in files with these partition values.

    The first and last date of Python also represent the dates beyond.

    :param is_timestamp: whether the column has a timestamp type, so that a date is a day.
    """
    days = {value for value in values if is_timestamp and type(value) is date}
    exact_values = set(values) - days
    name = identifier(column)
    tests = within(column, joined(value_range_of(day, _EPOCH) for day in days))
    tests += [in_values(column, exact_values)] if exact_values or not days else []
    tests += [f"{name} >= {literal(value)}" for value in values if _day_of(value) == date.max]
    tests += [
        f"{name} < {literal(_after(value, timedelta(days=1)))}"
        for value in values
        if _day_of(value) == date.min
    ]
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"


def _day_of(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else None


def clip_to_ranges(value: Any, merged_ranges: Iterable[ValueRange]) -> list[ValueRange]:
    """Return the parts of a value's range that are in some disjoint ranges."""
    parts: list[ValueRange] = []
    # All bounds have the type of one column.
    bounds: Iterable[tuple[Any, Any]] = merged_ranges
    for low, high in bounds:
        begin, end = value_range_of(value, low)
        if begin < high and low < end:
            parts.append((max(begin, low), min(end, high)))
    return parts


def _after(value: Any, step: timedelta) -> Any:
    """Add a step to a day or timestamp; Python's maximum, such as 9999-12-31, returns itself."""
    last = (
        datetime.max.replace(tzinfo=value.tzinfo) if isinstance(value, datetime) else date.max
    )
    return last if last - step < value else value + step
