"""Who writes, and which partitions the writing is about."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from lakehouse.iceberg.quoting import identifier, literals
from lakehouse.iceberg.spans import Bound, Span, joined, within


@dataclass(frozen=True)
class Partitions:
    """The partitions of a run.

    `values` are their names as text, for stamps and metadata.
    `ranges` are half-open `[low, high)` bounds where partitions are spans of a column; else `values` are its values.
    `bounds` are those of all partitions that there are, of this run or another; None where they have none.
    """

    values: tuple[str, ...]
    ranges: tuple[Span, ...] = ()
    bounds: Span | None = None

    def predicate(self, column: str) -> str:
        """Return the SQL predicate of the rows whose `column` lies in these partitions."""
        if not self.ranges:
            return f"{identifier(column)} IN {literals(self.values)}"
        spans = within(column, self.spans)
        return spans[0] if len(spans) == 1 else f"({' OR '.join(spans)})"

    def outside(self, column: str) -> str:
        """Return the SQL predicate of the rows whose `column` lies in none of these partitions, or is NULL."""
        return f"({identifier(column)} IS NULL OR NOT ({self.predicate(column)}))"

    @property
    def spans(self) -> list[Span]:
        """The ranges, those that touch joined."""
        return joined(self.ranges)

    def has(self, value: Bound | str | None) -> bool:
        """Whether a value lies in one of these partitions."""
        if value is None or not self.ranges:
            return value is not None and str(value) in self.values
        return any(low <= _like(value, low) < high for low, high in self.ranges)  # type: ignore[operator]

    def is_one(self, value: Bound | str | None) -> bool:
        """Whether a value lies in any partition that there is, of this run or another."""
        if value is None:
            return False
        if self.bounds is None:
            return True
        low, high = self.bounds
        return low <= _like(value, low) < high  # type: ignore[operator]


@dataclass(frozen=True)
class Run:
    """The run that a write belongs to: its id in Dagster, and its partitions where it has any.

    `anew` says that these are computed from all their rows, and not from what they hold and what came since.
    """

    run_id: str = ""
    partitions: Partitions | None = None
    anew: bool = True

    @property
    def partition_values(self) -> tuple[str, ...]:
        """Names of the partitions; empty where the run has none."""
        return self.partitions.values if self.partitions else ()


def within_partitions(partitions: Partitions | None, by: str | None) -> str | None:
    """Return the SQL predicate of the rows whose column `by` lies in some partitions; None where that is all."""
    return partitions.predicate(by) if partitions and by else None


def _like(value: Bound | str, bound: Bound) -> Bound | str:
    """Return a day as the moment that it begins in UTC, where partitions are spans of moments."""
    if isinstance(bound, datetime) and isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value


def text(bound: Bound) -> str:
    """Write a bound of a partition as text that sorts and reads back."""
    return str(bound) if isinstance(bound, int) else bound.isoformat()
