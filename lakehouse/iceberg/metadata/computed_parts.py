"""Parts of a table with the code versions that computed their rows."""

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from lakehouse.iceberg.metadata.value_ranges import ValueRange, bound
from lakehouse.iceberg.metadata.write_context import Partitions

UNKNOWN_CODE = ""
"""The version of rows from another tool, or from a function without a source file."""


@dataclass(frozen=True)
class ComputedPart:
    """Some partitions and the code versions that computed their rows.

    Without partitions, it is the entire table or its remaining partitions.
    """

    versions: Set[str]
    values: tuple[str, ...] = ()
    merged_ranges: tuple[tuple[str, str], ...] = ()

    @property
    def is_remainder(self) -> bool:
        """Whether this is the entire table, or all partitions that no other part names."""
        return not self.values and not self.merged_ranges

    @property
    def is_unknown(self) -> bool:
        """Whether it contains rows with an unknown code version."""
        return UNKNOWN_CODE in self.versions

    def is_older_than(self, version: str) -> bool:
        """Whether it contains rows of another known code version."""
        return bool(self.versions - {UNKNOWN_CODE, version})

    @cached_property
    def partitions(self) -> Partitions:
        """The partitions, as the partitions of a run."""
        merged_ranges = tuple((bound(low), bound(high)) for low, high in self.merged_ranges)
        return Partitions(self.values, merged_ranges)

    def names_any(self, partitions: Partitions) -> bool:
        """Whether it contains any of some partitions; False if the column had another type."""
        if partitions.merged_ranges:
            return any(map(self._shares, partitions.merged_ranges))
        return not set(self.values).isdisjoint(partitions.values)

    def _shares(self, span: ValueRange) -> bool:
        low, high = span
        return any(
            type(begin) is type(low) and begin < high and low < end  # type: ignore[operator]
            for begin, end in self.partitions.merged_ranges
        )


def parts_of(
    parts: Sequence[ComputedPart], partitions: Partitions | None
) -> Sequence[ComputedPart]:
    """Return the parts that contain some partitions; all parts if `partitions` is None."""
    if partitions is None:
        return parts
    named = [part for part in parts if part.names_any(partitions)]
    return named or [part for part in parts if part.is_remainder]


def parts_text(parts: Iterable[ComputedPart]) -> str:
    """Serialize parts for a snapshot summary."""
    return json.dumps(
        [[sorted(part.versions), part.values, part.merged_ranges] for part in parts]
    )


def parts_of_text(text: str | None) -> tuple[ComputedPart, ...]:
    """Parse parts from a snapshot summary."""
    parts = []
    for versions, values, merged_ranges in json.loads(text or "[]"):
        bounds = tuple((low, high) for low, high in merged_ranges)
        parts.append(ComputedPart(frozenset(versions), tuple(values), bounds))
    return tuple(parts)
