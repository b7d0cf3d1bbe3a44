"""Who writes, and which partitions the writing is about."""

from dataclasses import dataclass
from datetime import date, datetime

from lakehouse.iceberg.quoting import identifier, literal, literals

Bound = date | datetime | int


@dataclass(frozen=True)
class Partitions:
    """The partitions of a run.

    `values` are their names as text, for stamps and metadata.
    `ranges` are half-open `[low, high)` bounds where partitions are spans of a column; else `values` are its values.
    """

    values: tuple[str, ...]
    ranges: tuple[tuple[Bound, Bound], ...] = ()

    def predicate(self, column: str) -> str:
        """Return the SQL predicate of the rows whose `column` lies in these partitions."""
        name = identifier(column)
        if not self.ranges:
            return f"{name} IN {literals(self.values)}"
        spans = [f"({name} >= {literal(low)} AND {name} < {literal(high)})" for low, high in _joined(self.ranges)]
        return spans[0] if len(spans) == 1 else f"({' OR '.join(spans)})"


@dataclass(frozen=True)
class Run:
    """The run that a write belongs to: its id in Dagster, and its partitions where it has any."""

    run_id: str = ""
    partitions: Partitions | None = None

    @property
    def partition_values(self) -> tuple[str, ...]:
        """Names of the partitions; empty where the run has none."""
        return self.partitions.values if self.partitions else ()


def _joined(ranges: tuple[tuple[Bound, Bound], ...]) -> list[tuple[Bound, Bound]]:
    joined: list[tuple[Bound, Bound]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined
