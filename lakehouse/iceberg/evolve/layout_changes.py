"""Differences from the declared partitioning, sort order, location, format and properties."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from lakehouse.iceberg.evolve.row_level_mode import ChosenRowLevel, choose_for_table, is_chosen
from lakehouse.iceberg.evolve.schema_steps import Change, DeniedChange, Order, Step
from lakehouse.iceberg.metadata.table_state import TableState
from lakehouse.tables.declaration import RowLevel
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.table_properties import (
    COPY_ON_WRITE,
    DELETE_PROPERTY,
    ROW_LEVEL_PROPERTIES,
    table_properties,
)

MANAGED_PROPERTY = "lakehouse.managed-properties"
"""Table property: the names of properties that follow the declaration."""
DISTRIBUTION_PROPERTY = "write.distribution-mode"


def declared_properties(
    table: IcebergTable, row_level: RowLevel = COPY_ON_WRITE
) -> dict[str, str]:
    """Return the declared Iceberg properties, without the format version.

    :param row_level: the row-level mode if the declaration sets none.
    """
    properties = table_properties(table, row_level)
    del properties["format-version"]
    return properties


def managed_properties(table: IcebergTable) -> str:
    return json.dumps(sorted(declared_properties(table)))


def created_properties(table: IcebergTable) -> dict[str, str]:
    return {**table_properties(table), MANAGED_PROPERTY: managed_properties(table)}


_LOCATION = re.compile(
    r"(?:([a-z][a-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.IGNORECASE | re.DOTALL
)
"""Scheme, host or bucket, and path, which can contain URL delimiters such as `#`."""


def layout_changes(
    table: IcebergTable, state: TableState, renamed: Mapping[str, str]
) -> Iterator[Change]:
    """Yield the steps and denied changes for everything except the columns.

    :param renamed: new names of columns that are renamed first, by old name in lower case.
    """
    yield from _partitioning(table, [_renamed(field, renamed) for field in state.partitioning])
    yield from _sort_order(table, state, renamed)
    yield from _location(table, state)
    yield from _format(table, state)
    if table.comment != state.comment:
        yield Step(
            Order.COMMENT,
            f"describe the table as {table.comment!r}",
            (f"IS {literal(table.comment)}",),
            prefix="COMMENT ON TABLE",
        )
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
            yield _change_partitioning(
                f"partition by {successor} in place of {field}",
                f"REPLACE PARTITION FIELD {field.sql} WITH {successor.sql}",
            )
        else:
            yield _change_partitioning(
                f"stop partitioning by {field}", f"DROP PARTITION FIELD {field.sql}"
            )
    for field in added.values():
        yield _change_partitioning(
            f"partition also by {field}", f"ADD PARTITION FIELD {field.sql}"
        )


def _change_partitioning(description: str, clause: str) -> Step:
    return Step(Order.PARTITIONING, description, (clause,), automatic=False)


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
    fields = ", ".join(field.sql for field in table.sort_fields)
    if fields:
        # LOCALLY keeps the distribution mode; its default for a sorted table is `range`.
        description = f"sort new files by {', '.join(map(str, table.sort_fields))}"
        clauses: tuple[str, ...] = (f"WRITE LOCALLY ORDERED BY {fields}",)
    else:
        # UNORDERED sets the distribution mode to `none`, so it is restored.
        mode = state.properties.get(DISTRIBUTION_PROPERTY)
        restored = (
            _set({DISTRIBUTION_PROPERTY: mode}) if mode else _unset([DISTRIBUTION_PROPERTY])
        )
        description, clauses = "stop sorting new files", ("WRITE UNORDERED", restored)
    yield Step(Order.SORT_ORDER, description, clauses, automatic=False)


def _sort_key(field: SortField) -> tuple[object, ...]:
    return *_key(field.field), field.descending, field.nulls_first


def _location(table: IcebergTable, state: TableState) -> Iterator[Change]:
    if table.location and _normal(table.location) != _normal(state.location):
        yield Step(
            Order.LOCATION,
            f"write new files below {table.location} rather than {state.location}",
            (f"SET LOCATION {literal(table.location)}",),
            automatic=False,
        )


def _normal(location: str) -> tuple[str, str, str]:
    # Iceberg stores local folders as `file:/x` or `file:///x`, and Spark accepts `/x`.
    match = _LOCATION.fullmatch(location)
    scheme, host, path = match.groups(default="") if match else ("", "", location)
    return scheme.lower() or "file", host, str(PurePosixPath("/", path.lstrip("/")))


def _format(table: IcebergTable, state: TableState) -> Iterator[Change]:
    declared = int(table_properties(table)["format-version"])
    if declared < state.format_version:
        yield DeniedChange(
            table.name,
            "the format version",
            str(state.format_version),
            str(declared),
            "a table does not go back to an older format.",
            f"Declare format_version={state.format_version}, or copy the rows to a new table.",
        )
    elif declared > state.format_version:
        yield upgrade_format(state.format_version, declared)


def upgrade_format(current: int, declared: int) -> Step:
    """Return the step that upgrades the format version, which some readers may not support."""
    return Step(
        Order.FORMAT,
        f"upgrade the format from version {current} to {declared}",
        (_set({"format-version": str(declared)}),),
        automatic=False,
    )


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
            yield Step(
                Order.PROPERTIES,
                f"change rows by {chosen}: {_shown(row_level)}",
                (_set(row_level),),
            )
    unset = [name for name in managed if name not in declared and name in state.properties]
    descriptions, clauses = [], []
    if values:
        descriptions.append(_shown(values))
        clauses.append(_set(values))
    if unset:
        descriptions.append(f"unset {', '.join(unset)}")
        # `values` contains the list of managed names: remove properties before they leave the
        # list.
        clauses.insert(0, _unset(unset))
    if clauses:
        yield Step(Order.PROPERTIES, "; ".join(descriptions), tuple(clauses))


def _shown(values: Mapping[str, str]) -> str:
    return f"set {', '.join(f'{name}={value}' for name, value in values.items())}"


def _set(properties: Mapping[str, str]) -> str:
    values = ", ".join(
        f"{literal(name)} = {literal(value)}" for name, value in properties.items()
    )
    return f"SET TBLPROPERTIES ({values})"


def _unset(names: Sequence[str]) -> str:
    return f"UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(literal, names))})"


def _row_level(table: IcebergTable, state: TableState) -> ChosenRowLevel | None:
    """Return the row-level mode for the table; None if the declaration sets it."""
    if not is_chosen(table):
        return None
    # The mode of merges can differ temporarily during a merge with many changes.
    current = state.properties.get(DELETE_PROPERTY)
    return choose_for_table(
        current, state.format_version, state.main_bytes, state.main_deleted_rows
    )
