"""Parts of a table, and the versions of the code that their rows were computed by."""

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from lakehouse.iceberg.metadata.value_ranges import Span, bound
from lakehouse.iceberg.metadata.write_context import Partitions

UNKNOWN_CODE = ""
"""The version of what another tool computed, or a function without a source file."""


@dataclass(frozen=True)
class ComputedPart:
    """Some partitions, or where it names none a whole table or the rest of one, and the versions
    of the code that its rows were computed by: more than one where some were added by other code.

    Partitions are spans of a column, half-open and as text, or else values of it.
    """

    versions: Set[str]
    values: tuple[str, ...] = ()
    spans: tuple[tuple[str, str], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole table, or all of it that other parts do not name."""
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

    def names_any(self, partitions: Partitions) -> bool:
        """Whether it names any of some partitions; not where the column had another type."""
        if partitions.spans:
            return any(map(self._shares, partitions.spans))
        return not set(self.values).isdisjoint(partitions.values)

    def _shares(self, span: Span) -> bool:
        low, high = span
        return any(
            type(begin) is type(low) and begin < high and low < end  # type: ignore[operator]
            for begin, end in self.partitions.spans
        )


def parts_of(
    parts: Sequence[ComputedPart], partitions: Partitions | None
) -> Sequence[ComputedPart]:
    """Return the parts that some partitions are in, or all of a table without any."""
    if partitions is None:
        return parts
    named = [part for part in parts if part.names_any(partitions)]
    return named or [part for part in parts if part.is_whole]


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
