"""Maps partitions of a Dagster run to bounds in the table's partition column."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from itertools import chain
from typing import Any, cast
from zoneinfo import ZoneInfo

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.values.value_ranges import AllPartitions, Bound, joined, value_range_of
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.tables.partitioning import Unit
from lakehouse.tables.table import IcebergTable

_KEY = "dagster/partition"
_FIRST, _LAST = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
_ONLY = "lakehouse/partitions"
_NUMBERS = ("int", "bigint")
_NUMBER = re.compile(r"-?[0-9]+")


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return Dagster's tags for a run of a partition range, both bounds included."""
    return {_FIRST: first, _LAST: last}


def range_of(tags: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first and last partition of a run from its tags; None without partitions."""
    first = tags.get(_FIRST) or tags.get(_KEY)
    last = tags.get(_LAST) or first
    return (first, last) if first and last else None


def only_tags(stretches: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the tag of a run that skips partitions of its range.

    :param stretches: first and last key of each contiguous range that the run computes.
    """
    return {_ONLY: json.dumps(stretches)}


def names_stretches(tags: Mapping[str, str]) -> bool:
    """Whether the tags of a run name the contiguous ranges that it computes."""
    return _ONLY in tags


def computed_of(tags: Mapping[str, str], keys: Sequence[str]) -> Sequence[str]:
    """Return the partitions that a run computes: all of its range unless a tag limits them.

    :param keys: keys of the range, in order.
    """
    if not names_stretches(tags):
        return keys
    order = {key: position for position, key in enumerate(keys)}
    computed: list[str] = []
    for first, last in _only(tags):
        if first in order and last in order:
            computed += keys[order[first] : order[last] + 1]
    return computed


def computed_bounds(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the bounds of each contiguous partition range of a run; empty without partitions."""
    return tuple(chain.from_iterable(_only(tags))) or range_of(tags) or ()


def _only(tags: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(first, last) for first, last in json.loads(tags.get(_ONLY, "[]"))]


def partitions_of(
    definition: dg.PartitionsDefinition, keys: Sequence[str], *, column: str, column_type: str
) -> Partitions:
    """Return the partitions for `keys` as values or ranges of a column.

    A time window is a range of dates, or of timestamps in a timestamp column. Static and
    dynamic keys are the values of a string column or the numbers of an integer column.

    :raises DeclarationError: the column type does not fit the partitions.
    """
    every = all_partitions(definition, column=column, column_type=column_type)
    return Partitions(tuple(keys), tuple(_ranges(definition, keys, column, column_type)), every)


def all_partitions(
    definition: dg.PartitionsDefinition, *, column: str, column_type: str
) -> AllPartitions | None:
    """Return all current partitions of a definition; None if only the Dagster instance has them.

    :raises DeclarationError: the column type does not fit the partitions.
    """
    _check_fit(definition, column, column_type)
    if isinstance(definition, dg.DynamicPartitionsDefinition):
        return None
    if (
        isinstance(definition, dg.TimeWindowPartitionsDefinition)
        and not definition.exclusions
        and column_type != "string"
    ):
        first = definition.get_first_partition_window()
        last = definition.get_last_partition_window()
        if not first or not last:
            return AllPartitions(())
        # Convert each window separately: 24 hours would become one day.
        (start, _), (_, end) = (
            _range(window.start, window.end, column, column_type) for window in (first, last)
        )
        return AllPartitions(((start, end),))
    keys = definition.get_partition_keys()
    ranges = _ranges(definition, keys, column, column_type)
    return AllPartitions(tuple(joined(ranges)), frozenset(() if ranges else keys))


def all_partitions_of(
    table: IcebergTable, definition: dg.PartitionsDefinition
) -> AllPartitions | None:
    """Return all current partitions of a table; None if they are unknown or it has none."""
    by = table.overwritten_by
    if not by:
        return None
    return all_partitions(definition, column=by, column_type=table.column(by).type)


def _ranges(
    definition: dg.PartitionsDefinition, keys: Sequence[str], column: str, column_type: str
) -> list[tuple[Bound, Bound]]:
    """Return the range of each partition; empty if partitions are column values."""
    if column_type == "string":
        return []
    if isinstance(definition, dg.TimeWindowPartitionsDefinition):
        windows = [definition.time_window_for_partition_key(key) for key in keys]
        return [_range(window.start, window.end, column, column_type) for window in windows]
    return [_number(key, column) for key in keys]


def _check_fit(definition: dg.PartitionsDefinition, column: str, column_type: str) -> None:
    if isinstance(definition, dg.MultiPartitionsDefinition):
        raise DeclarationError(
            f"partitions of several dimensions were given for column {column}; expected one"
            " dimension.",
            next_step="Partition the asset by one dimension, and the table by more columns.",
        )
    if isinstance(definition, dg.TimeWindowPartitionsDefinition):
        if column_type not in ("string", "date", "timestamp"):
            raise _unfit("windows of time", column, column_type, "date, timestamp or string")
    elif column_type not in ("string", *_NUMBERS):
        raise _unfit(
            f"{type(definition).__name__}", column, column_type, "string, int or bigint"
        )


def keys_holding(
    definition: dg.PartitionsDefinition,
    keys: Sequence[str],
    values: Iterable[Any],
    column_type: str = "date",
) -> set[str]:
    """Return the keys of the partitions that contain column values.

    A value outside of all partitions, such as NULL, maps to the newest partition if no other
    value maps to a partition.

    :param keys: all keys of the definition, in order.
    :param column_type: a UTC day of a timestamp column can overlap several windows.
    """
    values = set(values)
    if not keys:
        return set()
    of_number = _keys_of_numbers(keys) if column_type in _NUMBERS else {}
    other_values = [
        value for value in values if value is not None and not isinstance(value, date)
    ]
    holding = {of_number.get(value, str(value)) for value in other_values} & set(keys)
    if isinstance(definition, dg.TimeWindowPartitionsDefinition):
        days = [value for value in values if isinstance(value, date)]
        look = _keys_of_timestamps if column_type == "timestamp" else _keys_of_days
        holding |= look(definition, keys, days) & set(keys)
    return holding or ({keys[-1]} if values else set())


def _keys_of_numbers(keys: Iterable[str]) -> dict[int, str]:
    """Return keys by their numeric value, such as 1 for `01`."""
    return {int(key): key for key in keys if _NUMBER.fullmatch(key)}


def _keys_of_timestamps(
    definition: dg.TimeWindowPartitionsDefinition, keys: Sequence[str], values: Iterable[date]
) -> set[str]:
    first = definition.time_window_for_partition_key(keys[0]).start
    windows: set[str] = set()
    for value in values:
        # The bounds of a timestamp value are datetimes.
        begin, end = cast(tuple[datetime, datetime], value_range_of(value, first))
        window = dg.TimeWindow(begin, end)
        windows |= {*definition.get_partition_keys_in_time_window(window)}
        if begin >= first:
            windows.add(definition.get_partition_key_for_timestamp(begin.timestamp()))
    return windows


def _keys_of_days(
    definition: dg.TimeWindowPartitionsDefinition, keys: Sequence[str], days: Iterable[date]
) -> set[str]:
    begin, end = (definition.time_window_for_partition_key(key) for key in (keys[0], keys[-1]))
    plain = {day.date() if isinstance(day, datetime) else day for day in days}
    within = (day for day in plain if begin.start.date() <= day < end.end.date())
    return {
        definition.get_partition_key_for_timestamp(_end_of(day, definition.timezone))
        for day in within
    }


def _end_of(day: date, time_zone: str) -> float:
    """Return the last instant of a day: a window that starts on that day contains it."""
    return datetime.combine(day, time.max, ZoneInfo(time_zone)).timestamp()


def _range(
    start: datetime, end: datetime, column: str, column_type: str
) -> tuple[Bound, Bound]:
    if column_type == "timestamp":
        return start.astimezone(UTC), end.astimezone(UTC)
    if start.time() != time() or end.time() != time():
        window = f"the window from {start} to {end}"
        raise _unfit(window, column, column_type, "whole days, or a timestamp column")
    return start.date(), end.date()


def _number(key: str, column: str) -> tuple[int, int]:
    if not _NUMBER.fullmatch(key):
        raise DeclarationError(
            f"partition {key!r} is not a number, and column {column} is; expected digits."
        )
    return int(key), int(key) + 1


def _unfit(partitions: str, column: str, column_type: str, expected: str) -> DeclarationError:
    return DeclarationError(
        f"{partitions} cannot be partitions of column {column}, which is {column_type};"
        f" expected {expected}.",
        next_step="Change the asset's partitions_def, or the column that the table overwrites by.",
    )


_KINDS: dict[Unit, tuple[type[dg.TimeWindowPartitionsDefinition], str]] = {
    "hour": (dg.HourlyPartitionsDefinition, "%Y-%m-%d-%H:%M"),
    "day": (dg.DailyPartitionsDefinition, "%Y-%m-%d"),
    "month": (dg.MonthlyPartitionsDefinition, "%Y-%m-%d"),
}


def table_partitions(table: IcebergTable) -> dg.TimeWindowPartitionsDefinition:
    """Return the partitions of a table that is written `by_hour`, `by_day` or `by_month`,
    including the current one.

    `@iceberg_asset` uses them by default; a plain asset declares `partitions_def=`.

    :raises DeclarationError: the table is not written by time windows.
    """
    windows = table.windows
    if windows is None:
        raise DeclarationError(
            f"{table.name} is written by {type(table.write).__name__} without windows of time;"
            " expected by_hour(…), by_day(…) or by_month(…).",
            next_step="Say write=by_day(…) in its declaration.",
        )
    kind, format_of_start = _KINDS[windows.unit]
    return kind(  # type: ignore[call-arg]
        start_date=windows.since.strftime(format_of_start),
        timezone=windows.time_zone,
        end_offset=1,
    )


def asset_partitions(
    table: IcebergTable, given: dg.PartitionsDefinition | None
) -> dg.PartitionsDefinition | None:
    """Return the partitions definition of a table's asset, explicit or from the table.

    :raises DeclarationError: both are set.
    """
    if table.windows is None:
        return given
    if given is not None:
        raise DeclarationError(
            f"{table.name} is written by each {table.windows.unit}, and its asset has a"
            " partitions_def too; expected one of them.",
            next_step="Leave out partitions_def.",
        )
    return table_partitions(table)
