"""Of which values of a partition column a table has files, told by its manifests: no JVM, no scan
of data.
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.all_partitions import span_of
from lakehouse.iceberg.metadata.changed_partitions import partition_fields
from lakehouse.iceberg.metadata.manifests import partition_values, read_manifests
from lakehouse.iceberg.metadata.value_ranges import Bound, Span, joined

if TYPE_CHECKING:
    from pyiceberg.table import Table

Extent = tuple[Any, Any]
"""The first and the last value of a column that rows of a file may have."""


def existing_extents(table: "Table", column: str) -> set[Extent] | None:
    """Return of which values of a column the current snapshot of a table has files; None where
    the partitioning of some does not tell.

    Rows without a value are left out.
    """
    specs, fields = table.specs(), partition_fields(table, column, _TELLING)
    extents: set[Extent] = set()
    for manifest in read_manifests(table):
        field_of_spec = fields.get(manifest.partition_spec_id)
        if field_of_spec is None:
            return None
        spec = specs[manifest.partition_spec_id]
        for entry in manifest.fetch_manifest_entry(table.io):
            value = partition_values(table, spec, entry)[field_of_spec.field_id]
            if value is not None:
                extents.add(_TELLING[str(field_of_spec.transform)](value))
    return extents


class ExistingSpans:
    """The spans of a column that rows of some extents may lie in."""

    def __init__(self, extents: Iterable[Extent], like: Bound) -> None:
        """Join what touches.

        :param like: a bound of the type that is asked for: a day may stand for its moments.
        """
        spans = [(span_of(first, like)[0], span_of(last, like)[1]) for first, last in extents]
        # The bounds of one column are all of one type.
        merged: list[tuple[Any, Any]] = [*joined(spans)]
        self._begins = [begin for begin, _ in merged]
        self._ends = [end for _, end in merged]

    def share(self, span: Span) -> bool:
        """Whether they have values in common with a span."""
        low, high = span
        first = bisect_right(self._ends, low)
        return first < len(self._begins) and bool(self._begins[first] < high)


def _month(months: int) -> Extent:
    """Return the days of a month by its number since 1970."""
    return _first_day(months), _first_day(months + 1) - timedelta(days=1)


def _first_day(months: int) -> date:
    return date(1970 + months // 12, months % 12 + 1, 1)


def _hour(hours: int) -> Extent:
    begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    return begin, begin + timedelta(hours=1, microseconds=-1)


def _value(value: Any) -> Extent:
    return value, value


_TELLING = {"identity": _value, "day": _value, "month": _month, "hour": _hour}
