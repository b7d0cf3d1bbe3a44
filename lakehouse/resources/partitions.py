"""Partitions of a Dagster run as those of a table: bounds in the column that the table is partitioned by."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.run import Bound, Partitions

_KEY = "dagster/partition"
_FIRST, _LAST = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags by which Dagster knows a run of a range of partitions, both bounds included."""
    return {_FIRST: first, _LAST: last}


def range_of(tags: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first and the last partition of a run, by its tags; None where it has none."""
    first = tags.get(_FIRST) or tags.get(_KEY)
    last = tags.get(_LAST) or first
    return (first, last) if first and last else None


def partitions_of(
    definition: dg.PartitionsDefinition, keys: Sequence[str], *, column: str, column_type: str
) -> Partitions:
    """Return the partitions that `keys` stand for in a column.

    A window of time is a span of dates, or in a timestamp column the span of moments that it has in its time zone.
    Static and dynamic keys are the values of a string column, or the numbers of an integer one.

    :raises DeclarationError: where the column cannot hold such partitions.
    """
    if isinstance(definition, dg.TimeWindowPartitionsDefinition) and column_type != "string":
        windows = [definition.time_window_for_partition_key(key) for key in keys]
        ranges = [_span(window.start, window.end, column, column_type) for window in windows]
        return Partitions(tuple(keys), tuple(ranges), _all_of(definition, column, column_type))
    if isinstance(definition, dg.MultiPartitionsDefinition):
        raise DeclarationError(
            f"partitions of several dimensions were given for column {column}; expected one dimension.",
            next_step="Partition the asset by one dimension; the table may be partitioned by more columns.",
        )
    if column_type in ("int", "bigint"):
        return Partitions(tuple(keys), tuple(_number(key, column) for key in keys))
    if column_type != "string":
        raise _unfit(f"{type(definition).__name__}", column, column_type, "string, int or bigint")
    return Partitions(tuple(keys))


def keys_holding(definition: dg.PartitionsDefinition, keys: Sequence[str], values: Iterable[Any]) -> set[str]:
    """Return the keys of the partitions that hold some values of a table's column.

    The newest stands for those that are in none, such as NULL or a day before the first, where no other is found.

    :param keys: all keys of the definition, in order.
    """
    values = set(values)
    if not isinstance(definition, dg.TimeWindowPartitionsDefinition):
        return {str(value) for value in values} & set(keys)
    if not keys:
        return set()
    begin, end = (definition.time_window_for_partition_key(key) for key in (keys[0], keys[-1]))
    days = (value.date() if isinstance(value, datetime) else value for value in values if value is not None)
    within = (day for day in days if begin.start.date() <= day < end.end.date())
    found = {definition.get_partition_key_for_timestamp(_end_of(day, definition.timezone)) for day in within}
    return found or ({keys[-1]} if values else set())


def _end_of(day: date, time_zone: str) -> float:
    """Return the moment at which a day is about to end: the window that begins on a day has the day."""
    return datetime.combine(day, time.max, ZoneInfo(time_zone)).timestamp()


def _all_of(definition: dg.TimeWindowPartitionsDefinition, column: str, column_type: str) -> tuple[Bound, Bound] | None:
    """Return the bounds of all partitions that a definition has by now."""
    first, last = definition.get_first_partition_window(), definition.get_last_partition_window()
    return _span(first.start, last.end, column, column_type) if first and last else None


def _span(start: datetime, end: datetime, column: str, column_type: str) -> tuple[Bound, Bound]:
    if column_type == "timestamp":
        return start.astimezone(UTC), end.astimezone(UTC)
    if column_type != "date":
        raise _unfit("windows of time", column, column_type, "date, timestamp or string")
    if start.time() != time() or end.time() != time():
        raise _unfit(f"the window from {start} to {end}", column, column_type, "whole days, or a timestamp column")
    return start.date(), end.date()


def _number(key: str, column: str) -> tuple[int, int]:
    if not key.lstrip("-").isdigit():
        raise DeclarationError(f"partition {key!r} is not a number, and column {column} is; expected digits.")
    return int(key), int(key) + 1


def _unfit(partitions: str, column: str, column_type: str, expected: str) -> DeclarationError:
    return DeclarationError(
        f"{partitions} cannot be partitions of column {column}, which is {column_type}; expected {expected}.",
        next_step="Change the asset's partitions_def, or the column that the table overwrites by.",
    )
