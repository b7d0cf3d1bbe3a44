"""Declarations that differ in some parts, and the state of a table like one."""

from dataclasses import replace
from typing import Any

from lakehouse.iceberg.evolve.layout_changes import (
    MANAGED_PROPERTY,
    declared_properties,
    managed_properties,
)
from lakehouse.iceberg.metadata.table_state import ColumnState, TableState
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.tables.types import parse

NAME = "silver.orders"


def columns(**types: str | Column) -> list[Column]:
    """Return columns by name and type; a `Column` is taken as it is."""
    return [
        given if isinstance(given, Column) else Column(name, given)
        for name, given in types.items()
    ]


def declared(**parts: Any) -> IcebergTable:
    """Return a declaration of `silver.orders`, by default with an id and a note."""
    given: dict[str, Any] = {
        "name": NAME,
        "comment": "Orders.",
        "columns": columns(id="bigint", note="string"),
        "write": Append(once_by=()),
    }
    return IcebergTable(**given | parts)


def of(**types: str | Column) -> IcebergTable:
    return declared(columns=columns(**types))


def state_like(table: IcebergTable, **parts: Any) -> TableState:
    """Return the state of a table that was made from a declaration, and holds rows."""
    properties = declared_properties(table) | {
        "comment": table.comment,
        MANAGED_PROPERTY: managed_properties(table),
    }
    state = TableState(
        name=table.name,
        columns=tuple(
            ColumnState(column.name, parse(column.type), column.doc, column.required)
            for column in table.columns
        ),
        partitioning=table.partition_fields,
        partition_names={str(field): field.column for field in table.partition_fields},
        past_partitioning=table.partition_fields,
        sort_order=table.sort_fields,
        properties=properties,
        location=table.location or "file:///warehouse/orders",
        format_version=table.format_version,
        schema_id=0,
        snapshot_schema_id=0,
        has_snapshot=True,
        is_empty=False,
    )
    return replace(state, **parts)
