"""Differences between the actual and the declared partitioning, sort order, location, format
and properties; pure functions.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from lakehouse.iceberg.evolve import layout_steps
from lakehouse.iceberg.evolve.managed_properties import (
    DISTRIBUTION_PROPERTY,
    MANAGED_PROPERTY,
    declared_properties,
    managed_properties,
)
from lakehouse.iceberg.evolve.schema_steps import Change, Refusal, comment_on_table
from lakehouse.iceberg.metadata.table_state import TableState
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.row_level import (
    COPY_ON_WRITE,
    DELETE_PROPERTY,
    ROW_LEVEL_PROPERTIES,
    ChosenRowLevel,
    choose_for_table,
    is_chosen,
)
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.table_properties import table_properties

_LOCATION = re.compile(
    r"(?:([a-z][a-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.IGNORECASE | re.DOTALL
)
"""Scheme, host or bucket, and path, which can contain URL delimiters such as `#`."""


def layout_changes(
    table: IcebergTable, state: TableState, renamed: Mapping[str, str]
) -> Iterator[Change]:
    """Yield the steps and refusals for everything except the columns.

    :param renamed: new names of columns that are renamed first, by old name in lower case.
    """
    yield from _partitioning(table, [_renamed(field, renamed) for field in state.partitioning])
    yield from _sort_order(table, state, renamed)
    yield from _location(table, state)
    yield from _format(table, state)
    if table.comment != state.comment:
        yield comment_on_table(table.comment)
    yield from _properties(table, state)


def _renamed(field: PartitionField, renamed: Mapping[str, str]) -> PartitionField:
    return replace(field, column=renamed.get(field.column.lower(), field.column))


def _partitioning(table: IcebergTable, current: list[PartitionField]) -> Iterator[Change]:
    current_keys = {_key(field) for field in current}
    declared_keys = set()
    added = {}
    for field in table.partition_fields:
        declared_keys.add(_key(field))
        if _key(field) not in current_keys:
            added[field.column.lower()] = field
    for field in current:
        if _key(field) in declared_keys:
            continue
        successor = added.pop(field.column.lower(), None)
        if successor:
            yield layout_steps.replace_partition_field(field, successor)
        else:
            yield layout_steps.drop_partition_field(field)
    for field in added.values():
        yield layout_steps.add_partition_field(field)


def _key(field: PartitionField) -> tuple[str, str, int | None]:
    return field.transform, field.column.lower(), field.width


def _sort_order(
    table: IcebergTable, state: TableState, renamed: Mapping[str, str]
) -> Iterator[Change]:
    current = [
        replace(field, field=_renamed(field.field, renamed)) for field in state.sort_order
    ]
    if list(map(_sort_key, current)) == list(map(_sort_key, table.sort_fields)):
        return
    if table.sort_fields:
        yield layout_steps.sort_files(table.sort_fields)
    else:
        yield layout_steps.stop_sorting_files(state.properties.get(DISTRIBUTION_PROPERTY))


def _sort_key(field: SortField) -> tuple[object, ...]:
    return *_key(field.field), field.descending, field.nulls_first


def _location(table: IcebergTable, state: TableState) -> Iterator[Change]:
    if table.location and _normal(table.location) != _normal(state.location):
        yield layout_steps.move_location(state.location, table.location)


def _normal(location: str) -> tuple[str, str, str]:
    # Iceberg stores local folders as `file:/x` or `file:///x`, and Spark accepts `/x`.
    match = _LOCATION.fullmatch(location)
    scheme, host, path = match.groups(default="") if match else ("", "", location)
    return scheme.lower() or "file", host, str(PurePosixPath("/", path.lstrip("/")))


def _format(table: IcebergTable, state: TableState) -> Iterator[Change]:
    declared = int(table_properties(table)["format-version"])
    if declared < state.format_version:
        yield Refusal(
            table.name,
            "the format version",
            str(state.format_version),
            str(declared),
            "a table does not go back to an older format.",
            f"Declare format_version={state.format_version}, or copy the rows to a new table.",
        )
    elif declared > state.format_version:
        yield layout_steps.upgrade_format(state.format_version, declared)


def _properties(table: IcebergTable, state: TableState) -> Iterator[Change]:
    chosen = _row_level(table, state)
    declared = declared_properties(table, chosen.mode if chosen else COPY_ON_WRITE)
    managed = json.loads(state.properties.get(MANAGED_PROPERTY, "[]"))
    expected = {**declared, MANAGED_PROPERTY: managed_properties(table)}
    values = {}
    for name, value in sorted(expected.items()):
        if state.properties.get(name) != value:
            values[name] = value
    if chosen:
        row_level = {name: values.pop(name) for name in ROW_LEVEL_PROPERTIES if name in values}
        if row_level:
            yield layout_steps.change_row_level(chosen, row_level)
    unset = [name for name in managed if name not in declared and name in state.properties]
    if values or unset:
        yield layout_steps.change_properties(values, unset)


def _row_level(table: IcebergTable, state: TableState) -> ChosenRowLevel | None:
    """Return the row-level mode for the table; None if the declaration sets it."""
    if not is_chosen(table):
        return None
    # The mode of merges can differ temporarily during a merge with many changes.
    current = state.properties.get(DELETE_PROPERTY)
    return choose_for_table(
        current, state.format_version, state.main_bytes, state.main_deleted_rows
    )
