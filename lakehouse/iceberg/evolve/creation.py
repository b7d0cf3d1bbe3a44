"""A table made from its declaration without a JVM, for what is written without one."""

from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.evolve.managed_properties import created_properties
from lakehouse.iceberg.metadata.column_types import iceberg_name
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.tables import types
from lakehouse.tables.table import Column, IcebergTable

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField


def ensure_directly(engine: Engine, table: IcebergTable, run_id: str = "") -> None:
    """Create the table as Spark would, or bring it to its declaration; runs in the table's
    lock.

    Spark is started only where the declaration of a table that is there has changed.

    :raises DeclarationError: when the table has more than plain columns.
    """
    if engine.catalog.has(table.name):
        planning.ensure(engine, table, run_id)
        return
    from pyiceberg.exceptions import TableAlreadyExistsError

    client = engine.catalog.client
    client.create_namespace_if_not_exists(table.namespace)
    try:
        client.create_table(
            table.name,
            _schema(table),
            _location(engine, table),
            properties={**created_properties(table), "comment": table.comment},
        )
    except TableAlreadyExistsError:
        # Another host was first, by the same declaration.
        planning.ensure(engine, table, run_id)


def _schema(table: IcebergTable) -> "Schema":
    from pyiceberg.schema import Schema

    if table.partitioning or table.sort_order:
        raise _not_plain(table, "it is partitioned or sorted")
    return Schema(
        *(_field(table, number, column) for number, column in enumerate(table.columns, 1))
    )


def _field(table: IcebergTable, number: int, column: Column) -> "NestedField":
    from pyiceberg.types import NestedField

    parsed = types.parse(column.type)
    if not isinstance(parsed, types.Primitive):
        raise _not_plain(table, f"{column.name} is {column.type}")
    return NestedField(
        number,
        column.name,
        iceberg_name(parsed),
        required=column.required,
        doc=column.doc or None,
    )


def _not_plain(table: IcebergTable, reason: str) -> DeclarationError:
    return DeclarationError(
        f"{table.name} cannot be created without Spark: {reason}; expected plain columns without"
        " partitions or order.",
        next_step="Declare it so, or let an asset write it.",
    )


def _location(engine: Engine, table: IcebergTable) -> str:
    """Return a folder of the table's own, so that one that is dropped and made again shares
    none with its past.
    """
    warehouse = engine.catalog.pyiceberg["warehouse"]
    return table.location or f"{warehouse}/{table.namespace}/{table.short_name}-{uuid4()}"
