"""Where the versions of one thing are found: their keys as delivered, and the partitions that
hold them.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.frame_joins import with_keys
from lakehouse.tables.quoting import among, between, identifier
from lakehouse.tables.table import IcebergTable, Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW_KEYS = 2_000
"""Values that a statement names with ease."""


def key_locations(table: IcebergTable, rows: "DataFrame", keys: "DataFrame") -> "DataFrame":
    """Return key and partition column of a partitioned table's rows that have any of some keys;
    reads no more.
    """
    assert table.overwritten_by is not None
    of = declared_versions(table).of
    columns = dict.fromkeys((*of, table.overwritten_by))
    return with_keys(rows.selectExpr(*map(identifier, columns)), keys, of)


def few_keys(table: IcebergTable, keys: "DataFrame") -> set[Any] | None:
    """Return the keys themselves where they are few, of one column, whole numbers or texts, and
    stand for nobody, since statements are shown: by their values rows are found without a join.
    None where they are not.

    :param keys: each at least once. Few rows are told apart here, which spares Spark a shuffle.
    """
    first, *others = declared_versions(table).of
    if others or first in table.masked_columns:
        return None
    rows = keys.limit(_FEW_KEYS + 1).collect()
    if len(rows) > _FEW_KEYS:
        rows = keys.distinct().limit(_FEW_KEYS + 1).collect()
    values = {row[0] for row in rows}
    is_plain = all(isinstance(value, int | str | None) for value in values)
    return values if len(rows) <= _FEW_KEYS and is_plain else None


def among_keys(table: IcebergTable, keys: set[Any]) -> str:
    """Return the SQL predicate of the rows that have any of a few keys; Iceberg leaves files out
    by the least and the greatest, and of many values by no others.
    """
    (column,) = declared_versions(table).of
    known = [key for key in keys if key is not None]
    if None in keys or not known:
        return among(column, keys)
    return f"{between(column, min(known), max(known))} AND {among(column, keys)}"


def key_terms(table: IcebergTable, frame: "DataFrame") -> list[str]:
    """Return what to select of delivered rows for the key whose versions the table holds one
    of, in its types.
    """
    types = dict(frame.dtypes)
    terms = []
    for name in declared_versions(table).of:
        delivered = delivered_name(table, name, types)
        raw = identifier(delivered)
        value = _cast_sql(table, name, raw, types.get(delivered, "")) or raw
        terms.append(f"{value} AS {identifier(name)}")
    return terms


def delivered_name(table: IcebergTable, column: str, delivered: Collection[str]) -> str:
    """Return which of some delivered columns is one of the table's, that may be renamed there."""
    return table.column(column).name_among(delivered) or column


def order_sql(values: Mapping[str, str]) -> str:
    """Return SQL for the place of a version among all of its key, the greatest the newest; NULL
    comes first.

    :param values: SQL by column of the table's `newest`, in its order and in the table's types.
    """
    parts = [f"{sql} AS {identifier(name)}" for name, sql in values.items()]
    return f"struct({', '.join(parts)})"


def is_newer_sql(refused: Mapping[str, str], accepted: str) -> str:
    """Return the SQL predicate that a refused version is newer than an accepted one, which then
    does not correct it. One that does not say when it was written is corrected by any.

    :param refused: what its `order_sql` is made of.
    :param accepted: the `order_sql` of the accepted one, in the same types.
    """
    first = next(iter(refused.values()))
    return f"({first} IS NOT NULL AND {order_sql(refused)} > {accepted})"


def typed_sql(table: IcebergTable, column: str, raw: str, delivered_type: str) -> str:
    """Return SQL for a delivered value in the type that its column has in the table.

    :param raw: SQL of its value as delivered.
    :param delivered_type: the type that it was delivered in.
    """
    value = _cast_sql(table, column, raw, delivered_type) or raw
    return f"try_cast({value} AS {table.column(column).type})"


def _cast_sql(table: IcebergTable, column: str, raw: str, delivered_type: str) -> str | None:
    """Return SQL for a column's delivered value in the table's type; None where it is of that,
    or no rule casts it.
    """
    cast = table.casts.get(column)
    return cast.sql(raw) if cast and cast.type != delivered_type else None


def declared_versions(table: IcebergTable) -> Versions:
    """Return what a version of the table's rows is; for tables that declare it."""
    assert table.versions is not None
    return table.versions
