"""The run and the partitions of a write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lakehouse.iceberg.values.value_ranges import (
    AllPartitions,
    Bound,
    ValueRange,
    clip_to_ranges,
    joined,
    value_range_of,
    within,
)
from lakehouse.tables.quoting import identifier, literals


@dataclass(frozen=True)
class Partitions:
    """The partitions of a run.

    `values` are their names as text, for commits and metadata. `ranges` are half-open bounds
    `[low, high)` if partitions are ranges of a column; otherwise `values` are values of the
    column. `every` contains all defined partitions; None if they are unknown.
    """

    values: tuple[str, ...]
    ranges: tuple[ValueRange, ...] = ()
    every: AllPartitions | None = None

    def predicate(self, column: str, column_type: str = "") -> str:
        """Return the SQL predicate of the rows in these partitions, in the declared type."""
        if not self.ranges:
            return f"{identifier(column)} IN {literals(self.values)}"
        tests = within(column, self.merged_ranges, column_type)
        return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"

    def outside(self, column: str) -> str:
        """Return the SQL predicate of the rows in none of these partitions, including NULL."""
        return f"({identifier(column)} IS NULL OR NOT ({self.predicate(column)}))"

    @cached_property
    def merged_ranges(self) -> list[ValueRange]:
        """The ranges, merged if they touch."""
        return joined(self.ranges)

    def has(self, value: Bound | str | None) -> bool:
        """Whether a value is in these partitions; a day is if all its timestamps are."""
        if value is None or not self.ranges:
            return value is not None and str(value) in self.values
        every = (
            self.every.merged_ranges
            if self.every
            else [value_range_of(value, self.ranges[0][0])]
        )
        parts = clip_to_ranges(value, every)
        # All bounds of one column have the same type.
        ranges: list[tuple[Any, Any]] = [*self.merged_ranges]
        return bool(parts) and all(
            any(low <= part[0] and part[1] <= high for low, high in ranges) for part in parts
        )

    def touches(self, value: Bound | str | None) -> bool:
        """Whether a value, or any timestamp of a day, is in these partitions."""
        if value is None or not self.ranges:
            return self.has(value)
        return bool(clip_to_ranges(value, self.merged_ranges))

    def is_computed_by(self, value: Bound | str | None) -> bool:
        """Whether a run of these partitions computes a value: in them, or in none."""
        return self.touches(value) or not self.is_one(value)

    def is_one(self, value: Bound | str | None) -> bool:
        """Whether a value is in any defined partition."""
        return value is not None and (self.every is None or self.every.has(value))


@dataclass(frozen=True)
class Run:
    """The run of a write: its Dagster run id, and its partitions if it has any.

    - `full_recompute`: its partitions are computed from all source rows, not incrementally from
      existing and new rows.
    - `reads_everything`: the same for a table without partitions. Runs started by a user read
      only new rows.
    - `follows_erasures`: rows of erased data subjects are removed, as from its sources; this
      requires a full read.
    - `code_version`: version of the code that computes the table; empty if unknown. See
      `lakehouse.iceberg.metadata.code_versions`.
    - `follows`: the write is a consequence of a finished write to another table, and stays
      valid whatever later writes do.
    - `read_snapshots`: snapshots that the caller read itself, by table; stored as watermarks.
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
        """Names of the partitions; empty if the run has none."""
        return self.partitions.values if self.partitions else ()


def within_partitions(partitions: Partitions | None, by: str | None) -> str | None:
    """Return the SQL predicate of the rows in some partitions; None for all rows."""
    return partitions.predicate(by) if partitions and by else None
