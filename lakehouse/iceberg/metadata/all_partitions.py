"""Which partitions an asset has by now, of any run: what lies in none of them is left out by
all.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from lakehouse.iceberg.metadata.value_ranges import Bound, Span, bound, joined, within
from lakehouse.tables.quoting import among, identifier, literal, literals

_ANY_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class AllPartitions:
    """All partitions that there are: spans of a column's values that are joined where they
    touch, or values as text.
    """

    spans: tuple[Span, ...] = ()
    values: frozenset[str] = frozenset()

    def has(self, value: Bound | str | None) -> bool:
        """Whether a value lies in a partition, a day with any of its moments; NULL lies in
        none.
        """
        if value is None or not self.spans:
            return value is not None and str(value) in self.values
        return bool(parts_within(value, self.spans))

    def has_all_of(self, value: Bound | str | None) -> bool:
        """Whether all rows of a value lie in partitions: those of a day may be in two, and one
        of them be none yet.
        """
        if value is None or not self.spans:
            return self.has(value)
        return parts_within(value, self.spans) == [span_of(value, self.spans[0][0])]

    def has_between(self, low: Any, high: Any) -> bool:
        """Whether all values from one to another lie in partitions that leave nothing out
        between them.
        """
        spans = (
            parts_within(low, [span]) and parts_within(high, [span]) for span in self.spans
        )
        return any(spans) and self.has_all_of(low) and self.has_all_of(high)

    def outside(self, column: str) -> str:
        """Return the SQL predicate of the rows whose column lies in no partition."""
        inside = " OR ".join(within(column, self.spans)) if self.spans else self._among(column)
        # Not by `coalesce`, which Iceberg leaves out no files by.
        return f"({identifier(column)} IS NULL OR NOT ({inside}))"

    def _among(self, column: str) -> str:
        return (
            f"{identifier(column)} IN {literals(sorted(self.values))}"
            if self.values
            else "false"
        )

    def values_of(self, texts: Iterable[str | None]) -> set[Any]:
        """Return the values that were written as text, in the type of the column; those that
        have another are no more.

        A column may have had another type when they were written.
        """
        return {
            value
            for text in texts
            if text is not None and (value := self._read(text)) is not None
        }

    def _read(self, text: str) -> Any:
        if not self.spans:
            return text
        try:
            value = bound(text)
        except ValueError:
            return None
        return value if isinstance(value, int) == isinstance(self.spans[0][0], int) else None


def span_of(value: Any, bound: Bound) -> Span:
    """Return the first value of what a value stands for, and the first after it, in the type of
    some bound.

    Where partitions are spans of moments, a day is one of UTC; where they are of days, a moment
    is its day.
    """
    if isinstance(bound, datetime):
        if not isinstance(value, datetime):
            begin = datetime.combine(value, time(), UTC)
            return begin, _after(begin, timedelta(days=1))
        return value, _after(value, timedelta(microseconds=1))
    if isinstance(bound, date):
        day = value.date() if isinstance(value, datetime) else value
        return day, _after(day, timedelta(days=1))
    return value, value + 1


def rows_of(column: str, values: Collection[Any], *, is_moment: bool) -> str:
    """Return the SQL predicate of the rows that stand in files of some values, as manifests tell
    these.

    Of a column of moments that is partitioned by days they are days, each of which stands for its
    moments. The first and the last that Python has stand for what lies beyond them too, which it
    cannot say.

    :param is_moment: whether the column is one of moments.
    """
    days = {value for value in values if is_moment and type(value) is date}
    others = set(values) - days
    name = identifier(column)
    tests = within(column, joined(span_of(day, _ANY_MOMENT) for day in days))
    tests += [among(column, others)] if others or not days else []
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


def parts_within(value: Any, spans: Iterable[Span]) -> list[Span]:
    """Return the parts of what a value stands for that lie in some spans, which neither touch
    nor overlap.
    """
    parts: list[Span] = []
    # What is compared is all of the type of one column.
    bounds: Iterable[tuple[Any, Any]] = spans
    for low, high in bounds:
        begin, end = span_of(value, low)
        if begin < high and low < end:
            parts.append((max(begin, low), min(end, high)))
    return parts


def _after(value: Any, step: timedelta) -> Any:
    """Return what comes after a day or a moment; the last that Python has, such as 9999-12-31,
    comes after itself.
    """
    last = (
        datetime.max.replace(tzinfo=value.tzinfo) if isinstance(value, datetime) else date.max
    )
    return last if last - step < value else value + step
