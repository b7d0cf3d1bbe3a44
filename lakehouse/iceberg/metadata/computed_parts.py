"""Parts of a table, and the versions of the code that their rows were computed by."""

import json
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lakehouse.iceberg.metadata.value_ranges import Span, bound
from lakehouse.iceberg.metadata.write_context import Partitions

UNKNOWN_CODE = ""
"""The version of what was computed before versions were recorded, or by somebody else."""


@dataclass(frozen=True)
class ComputedPart:
    """Some partitions, or a whole table where it names none, and the versions of the code that
    its rows were computed by: more than one where some were added by other code.

    Partitions are spans of a column, half-open and as text, or else values of it.
    """

    versions: Set[str]
    values: tuple[str, ...] = ()
    spans: tuple[tuple[str, str], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole table."""
        return not self.values and not self.spans

    @property
    def is_unknown(self) -> bool:
        """Whether rows are in it of which the code is not known."""
        return UNKNOWN_CODE in self.versions

    def is_older_than(self, version: str) -> bool:
        """Whether rows are in it that were computed by other code, as far as that is known."""
        return bool(self.versions - {UNKNOWN_CODE, version})

    @cached_property
    def partitions(self) -> Partitions:
        """The partitions, as those of a run."""
        spans = tuple((bound(low), bound(high)) for low, high in self.spans)
        return Partitions(self.values, spans)

    def touches(self, value: Any) -> bool:
        """Whether rows of a value of the partition column may be in it."""
        return self.is_whole or self.partitions.touches(value)

    def shares(self, span: Span) -> bool:
        """Whether a span of the partition column has values in common with it; not where the
        column had another type.
        """
        low, high = span
        if self.is_whole:
            return True
        return any(
            type(begin) is type(low) and begin < high and low < end  # type: ignore[operator]
            for begin, end in self.partitions.spans
        )

    def has_any(self, partitions: Partitions | None) -> bool:
        """Whether it has any of some partitions; of a run without partitions, all."""
        if partitions is None or self.is_whole:
            return True
        if partitions.spans:
            return any(map(self.shares, partitions.spans))
        return not set(self.values).isdisjoint(partitions.values)


def parts_text(parts: Iterable[ComputedPart]) -> str:
    """Return parts as text for the summary of a snapshot."""
    return json.dumps([[sorted(part.versions), part.values, part.spans] for part in parts])


def parts_of_text(text: str | None) -> tuple[ComputedPart, ...]:
    """Read parts back from the summary of a snapshot."""
    parts = []
    for versions, values, spans in json.loads(text or "[]"):
        bounds = tuple((low, high) for low, high in spans)
        parts.append(ComputedPart(frozenset(versions), tuple(values), bounds))
    return tuple(parts)
