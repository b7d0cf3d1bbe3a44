"""Keys of row versions as delivered, their order, and the partitions that contain them."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.frames.broadcast_joins import with_keys
from lakehouse.tables.quoting import between, identifier, in_values
from lakehouse.tables.table import IcebergTable, Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW_KEYS = 2_000
"""Number of values that fit easily into a statement."""


def key_locations(table: IcebergTable, rows: "DataFrame", keys: "DataFrame") -> "DataFrame":
    """Return the key and partition column of rows with any of some keys."""
    assert table.overwritten_by is not None
    of = declared_versions(table).of
    columns = dict.fromkeys((*of, table.overwritten_by))
    return with_keys(rows.selectExpr(*map(identifier, columns)), keys, of)


def few_keys(table: IcebergTable, keys: "DataFrame") -> set[Any] | None:
    """Return the keys if they are few, plain, in one column; None otherwise.

    They become literals in a logged statement, so personal keys are excluded.
    """
    first, *other_keys = declared_versions(table).of
    if other_keys or first in table.masked_columns:
        return None
    rows = keys.limit(_FEW_KEYS + 1).collect()
    if len(rows) > _FEW_KEYS:
        rows = keys.distinct().limit(_FEW_KEYS + 1).collect()
    values = {row[0] for row in rows}
    is_plain = all(isinstance(value, int | str | None) for value in values)
    return values if len(rows) <= _FEW_KEYS and is_plain else None


def few_keys_predicate(table: IcebergTable, keys: set[Any]) -> str:
    """Return the SQL predicate of the rows with any of a few keys.

    With many values, Iceberg skips files only by the range.
    """
    (column,) = declared_versions(table).of
    known = [key for key in keys if key is not None]
    if None in keys or not known:
        return in_values(column, keys)
    return f"{between(column, min(known), max(known))} AND {in_values(column, keys)}"


def key_terms(table: IcebergTable, frame: "DataFrame") -> list[str]:
    """Return SQL terms for the version key of delivered rows, in the table's types."""
    types = dict(frame.dtypes)
    terms = []
    for name in declared_versions(table).of:
        delivered = delivered_name(table, name, types)
        value = typed_sql(table, name, identifier(delivered), types.get(delivered, ""))
        terms.append(f"{value} AS {identifier(name)}")
    return terms


def delivered_name(table: IcebergTable, column: str, delivered: Collection[str]) -> str:
    """Return the delivered name of a table's column, which can be renamed there."""
    return table.column(column).matching_name(delivered) or column


def order_sql(values: Mapping[str, str]) -> str:
    """Return SQL for the order of a version among those of its key: greatest is newest, NULL
    first.

    :param values: SQL of each `newest` column, in order and in the table's types.
    """
    parts = [f"{sql} AS {identifier(name)}" for name, sql in values.items()]
    return f"struct({', '.join(parts)})"


def is_newer_sql(rejected: Mapping[str, str], accepted: str) -> str:
    """Return the SQL predicate that a rejected version is newer than an accepted one.

    :param rejected: the columns of its `order_sql`.
    :param accepted: the `order_sql` of the accepted version, in the same types.
    """
    first = next(iter(rejected.values()))
    return f"({first} IS NOT NULL AND {order_sql(rejected)} > {accepted})"


def typed_sql(table: IcebergTable, column: str, raw: str, delivered_type: str) -> str:
    """Return SQL for a delivered value in the type of the table's column.

    :param raw: SQL of the value as delivered.
    :param delivered_type: its type as delivered.
    """
    cast = table.casts.get(column)
    value = cast.sql(raw) if cast and cast.type != delivered_type else raw
    return f"try_cast({value} AS {table.column(column).type})"


def declared_versions(table: IcebergTable) -> Versions:
    """Return the `versions=` of a table that declares them."""
    assert table.versions is not None
    return table.versions
