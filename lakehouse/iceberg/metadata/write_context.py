"""Who writes, and which partitions the writing is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lakehouse.iceberg.metadata.all_partitions import AllPartitions, parts_within, span_of
from lakehouse.iceberg.metadata.value_ranges import Bound, Span, joined, within
from lakehouse.tables.quoting import identifier, literals


@dataclass(frozen=True)
class Partitions:
    """The partitions of a run.

    `values` are their names as text, for commits and metadata. `ranges` are half-open `[low,
    high)` bounds where partitions are spans of a column; else `values` are its values. `every`
    are all partitions that there are, of this run or another; None where they are not known.
    """

    values: tuple[str, ...]
    ranges: tuple[Span, ...] = ()
    every: AllPartitions | None = None

    def predicate(self, column: str, column_type: str = "") -> str:
        """Return the SQL predicate of the rows whose `column` lies in these partitions.

        :param column_type: as a declaration names it; left out, that of their bounds.
        """
        if not self.ranges:
            return f"{identifier(column)} IN {literals(self.values)}"
        spans = within(column, self.spans, column_type)
        return spans[0] if len(spans) == 1 else f"({' OR '.join(spans)})"

    def outside(self, column: str) -> str:
        """Return the SQL predicate of the rows whose `column` lies in none of these partitions,
        or is NULL.
        """
        return f"({identifier(column)} IS NULL OR NOT ({self.predicate(column)}))"

    @cached_property
    def spans(self) -> list[Span]:
        """The ranges, those that touch joined."""
        return joined(self.ranges)

    def has(self, value: Bound | str | None) -> bool:
        """Whether a value lies in these partitions; a day does with all its moments that are in
        any there is.
        """
        if value is None or not self.ranges:
            return value is not None and str(value) in self.values
        every = self.every.spans if self.every else [span_of(value, self.ranges[0][0])]
        asked = parts_within(value, every)
        # The bounds of one column are all of one type.
        spans: list[tuple[Any, Any]] = [*self.spans]
        return bool(asked) and all(
            any(low <= part[0] and part[1] <= high for low, high in spans) for part in asked
        )

    def touches(self, value: Bound | str | None) -> bool:
        """Whether a value lies in one of these partitions, a day with any of its moments."""
        return (
            bool(parts_within(value, self.spans))
            if self.ranges and value is not None
            else self.has(value)
        )

    def is_computed_by(self, value: Bound | str | None) -> bool:
        """Whether a run of these partitions computes a value: it lies in them, or in none there
        is, and then goes along with any run.
        """
        return self.touches(value) or not self.is_one(value)

    def is_one(self, value: Bound | str | None) -> bool:
        """Whether a value lies in any partition that there is, of this run or another."""
        return value is not None and (self.every is None or self.every.has(value))


@dataclass(frozen=True)
class Run:
    """The run that a write belongs to: its id in Dagster, and its partitions where it has any.

    `full_recompute` says that these are computed from all rows of their sources, and not
    incrementally, from the rows that they have and what came since. A table without partitions
    is only where `reads_everything` is set: a run that a person starts of it reads what is new.
    `follows_erasures` says that what the table has of rows of erased people goes, which its
    sources lost; then everything is to be read. `code_version` is that of what computes the
    table, see `lakehouse.iceberg.metadata.code_versions`; empty where it is not known.
    `follows` says that what it writes follows from a write of another table that has ended, so
    that it stands whatever becomes of later ones. `read_snapshots` are the snapshots that the
    caller read by itself, by table; the write stores them as watermarks.
    """

    run_id: str = ""
    partitions: Partitions | None = None
    full_recompute: bool = True
    reads_everything: bool = False
    follows_erasures: bool = False
    code_version: str = ""
    follows: bool = False
    read_snapshots: Mapping[str, int] = field(default_factory=dict)

    @property
    def partition_values(self) -> tuple[str, ...]:
        """Names of the partitions; empty where the run has none."""
        return self.partitions.values if self.partitions else ()


def within_partitions(partitions: Partitions | None, by: str | None) -> str | None:
    """Return the SQL predicate of the rows whose column `by` lies in some partitions; None
    where that is all.
    """
    return partitions.predicate(by) if partitions and by else None
