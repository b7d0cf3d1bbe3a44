"""Values of a partition column with files, from the manifests: no JVM, no data scan."""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.all_partitions import value_range_of
from lakehouse.iceberg.metadata.changed_partitions import partition_fields
from lakehouse.iceberg.metadata.manifests import partition_values, read_manifests
from lakehouse.iceberg.metadata.value_ranges import Bound, ValueRange, joined

if TYPE_CHECKING:
    from pyiceberg.table import Table

Extent = tuple[Any, Any]
"""The first and last value of a column that a file's rows can have."""


def existing_extents(table: "Table", column: str) -> set[Extent] | None:
    """Return the value extents of the current files; None if a spec does not determine them."""
    specs, fields = table.specs(), partition_fields(table, column, EXTENT_BY_TRANSFORM)
    extents: set[Extent] = set()
    for manifest in read_manifests(table):
        field_of_spec = fields.get(manifest.partition_spec_id)
        if field_of_spec is None:
            return None
        spec = specs[manifest.partition_spec_id]
        for entry in manifest.fetch_manifest_entry(table.io):
            value = partition_values(table, spec, entry)[field_of_spec.field_id]
            if value is not None:
                extents.add(EXTENT_BY_TRANSFORM[str(field_of_spec.transform)](value))
    return extents


class ExistingSpans:
    """The ranges of a column that can contain rows, from value extents."""

    def __init__(self, extents: Iterable[Extent], like: Bound) -> None:
        """Merge adjacent ranges, in the type of `like`; a day can represent its timestamps."""
        ranges = [
            (value_range_of(first, like)[0], value_range_of(last, like)[1])
            for first, last in extents
        ]
        # All bounds of one column have the same type.
        merged: list[tuple[Any, Any]] = [*joined(ranges)]
        self._starts = [start for start, _ in merged]
        self._ends = [end for _, end in merged]

    def share(self, span: ValueRange) -> bool:
        """Whether they overlap a range."""
        low, high = span
        first = bisect_right(self._ends, low)
        return first < len(self._starts) and bool(self._starts[first] < high)


def _month(months: int) -> Extent:
    """Return the first and last day of a month, by its number since 1970."""
    return _first_day(months), _first_day(months + 1) - timedelta(days=1)


def _first_day(months: int) -> date:
    year = min(1970 + months // 12, date.max.year)
    return date(year, months % 12 + 1, 1)


def _hour(hours: int) -> Extent:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    return start, start + timedelta(hours=1, microseconds=-1)


def _value(value: Any) -> Extent:
    return value, value


EXTENT_BY_TRANSFORM = {"identity": _value, "day": _value, "month": _month, "hour": _hour}
