"""Rows of people counted and deleted by Spark, in tables that only Spark reads or changes as it
should be: of format 3, other files than Parquet, types whose text is Spark's own.

Values are parameters of each statement, so that they stand in no text of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse.errors import UpkeepFailed
from lakehouse.iceberg.commit.retry import Failure, classify
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.erasure.arrow_ids import INTEGERS
from lakehouse.iceberg.erasure.nested_values import any_leaf_sql
from lakehouse.iceberg.erasure.normal_id_sql import normal_id_sql
from lakehouse.iceberg.erasure.person_columns import PersonColumn, PersonColumns
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyiceberg.types import PrimitiveType

Value = str | int


@dataclass
class _Parameters:
    values: dict[str, Value] = field(default_factory=dict)

    def add(self, value: Value) -> str:
        """Return how a statement names a value."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def listed(self, values: Sequence[Value]) -> str:
        return f"({', '.join(self.add(value) for value in values)})"


def count_by_spark(engine: Engine, table: str, columns: PersonColumns, snapshot_id: int) -> int:
    """Return how many rows of a snapshot are some people's."""
    parameters = _Parameters()
    predicate = _predicate(columns, parameters)
    name = engine.catalog.sql_name(table)
    # Columns that are tested were found in the table as it is; a snapshot may lack one.
    statement = f"SELECT count(*) FROM {name} VERSION AS OF {snapshot_id} WHERE {predicate}"
    with _values_untold(table):
        return int(engine.sql(statement, **parameters.values).collect()[0][0])


def delete_by_spark(
    engine: Engine,
    table: str,
    columns: PersonColumns,
    branch: str | None,
    properties: Mapping[str, str],
) -> None:
    """Delete the rows of some people from main, or from a branch.

    Where a predicate picks whole files, Spark deletes without a look into them, and without the
    properties of the commit. The text of a value, which no file has statistics of, keeps it
    from that.
    """
    parameters = _Parameters()
    predicate = _predicate(columns, parameters)
    name = engine.catalog.sql_name(table, branch=branch)
    with _values_untold(table), session_with(engine.spark, properties):
        engine.sql(f"DELETE FROM {name} WHERE {predicate}", **parameters.values)


@contextmanager
def _values_untold(table: str) -> Iterator[None]:
    """Keep the text of an error of Spark from being shown, which may quote the values."""
    try:
        yield
    except Exception as error:
        if classify(error) is not Failure.OTHER:
            raise
        kind = type(error).__name__
    else:
        return
    raise UpkeepFailed(
        f"{table}: Spark could not look for rows of people, or delete them ({kind}); expected"
        " that it can. Its words are not shown, since they may quote values of theirs.",
        next_step="Look whether `lakehouse sql` reads the table, then run the erasure again.",
    )


def _predicate(columns: PersonColumns, parameters: _Parameters) -> str:
    theirs = [_is_value(column, parameters) for column in columns.subject if column.is_current]
    personal = [
        _is_value(column, parameters) for column in columns.personal if column.is_current
    ]
    nobody = [_is_blank(column) for column in columns.subject if column.is_current]
    by_value = " OR ".join(personal)
    if personal and nobody:
        by_value = f"({' AND '.join(nobody)} AND ({by_value}))"
    return f"({' OR '.join(filter(None, [*theirs, by_value])) or 'false'})"


def _is_value(column: PersonColumn, parameters: _Parameters) -> str:
    name = identifier(column.name)
    if column.is_delivered:
        known = parameters.listed(sorted(column.normal_values))
        return f"coalesce({normal_id_sql(name)} IN {known}, false)"
    known = parameters.listed(sorted(column.values))
    is_value = any_leaf_sql(
        name,
        column.column_type,
        lambda leaf, _: f"coalesce(CAST({leaf} AS STRING) IN {known}, false)",
    )
    if column.type not in INTEGERS:
        return is_value
    if not column.integers:
        return "false"
    # This leaves files out by their statistics.
    return f"({name} IN {parameters.listed(column.integers)} AND {is_value})"


def _is_blank(column: PersonColumn) -> str:
    return f"NOT {any_leaf_sql(identifier(column.name), column.column_type, _tells)}"


def _tells(leaf: str, leaf_type: "PrimitiveType") -> str:
    if str(leaf_type) != "string":
        return f"({leaf} IS NOT NULL)"
    return f"coalesce({normal_id_sql(leaf)} <> '', false)"
