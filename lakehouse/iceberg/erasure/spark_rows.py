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
from lakehouse.iceberg.metadata.history import MAIN
from lakehouse.iceberg.metadata.table_state import schema_at
from lakehouse.tables.quoting import identifier, literal

if TYPE_CHECKING:
    from pyiceberg.table import Table

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


def count_by_spark(
    engine: Engine,
    loaded: "Table",
    columns: PersonColumns,
    ref: str,
    *,
    with_dropped: bool,
    hidden: bool = False,
) -> int:
    """Return how many rows of a branch or tag are some people's, at the snapshot that it has in a
    loaded table.

    :param with_dropped: whether columns that the table has no more tell too; by these no
        statement can delete.
    :param hidden: whether those are counted, and no others, that were deleted already by delete
        files: no reader sees them, and its files have them.
    """
    name = ".".join(loaded.name())
    snapshot_id = loaded.metadata.refs[ref].snapshot_id
    # Time travel to an id shows the names that the columns had then, also those of main.
    shown = columns if with_dropped else columns.current()
    shown = shown.shown_by(schema_at(loaded, snapshot_id))
    parameters = _Parameters()
    predicate = _predicate(shown, parameters)
    if hidden:
        # Iceberg leaves rows in that were deleted where this column is asked for.
        predicate = f"_deleted AND {predicate}"
    table = engine.catalog.sql_name(name)
    statement = f"SELECT count(*) FROM {table} VERSION AS OF {snapshot_id} WHERE {predicate}"
    with _values_untold(name, ref):
        return int(engine.sql(statement, **parameters.values).collect()[0][0])


def delete_by_spark(
    engine: Engine,
    loaded: "Table",
    columns: PersonColumns,
    ref: str,
    properties: Mapping[str, str],
) -> None:
    """Delete the rows of some people from main, or from a branch.

    Where a predicate picks whole files, Spark deletes without a look into them, and without the
    properties of the commit. The text of a value, which no file has statistics of, keeps it
    from that.
    """
    parameters = _Parameters()
    # A branch is written with the names that the table has now, whatever its head had.
    predicate = _predicate(columns.current(), parameters)
    name = ".".join(loaded.name())
    table = engine.catalog.sql_name(name, branch=None if ref == MAIN else ref)
    with _values_untold(name, ref), session_with(engine.spark, properties):
        engine.sql(f"DELETE FROM {table} WHERE {predicate}", **parameters.values)


@contextmanager
def _values_untold(table: str, ref: str) -> Iterator[None]:
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
        f"{table}: Spark could not look for rows of people in {ref}, or delete them ({kind});"
        " expected that it can. Its words are not shown, since they may quote values of theirs.",
        next_step=f"Look whether `lakehouse sql` reads the table VERSION AS OF {literal(ref)},"
        " then run the erasure again.",
    )


def _predicate(columns: PersonColumns, parameters: _Parameters) -> str:
    theirs = [_is_value(column, parameters) for column in columns.subject]
    personal = [_is_value(column, parameters) for column in columns.personal]
    nobody = [_is_blank(column) for column in columns.subject]
    by_value = " OR ".join(personal)
    if personal and nobody:
        by_value = f"({' AND '.join(nobody)} AND ({by_value}))"
    return f"({' OR '.join(filter(None, [*theirs, by_value])) or 'false'})"


def _is_value(column: PersonColumn, parameters: _Parameters) -> str:
    name = identifier(column.name)
    if column.is_normalized:
        known = parameters.listed(sorted(column.normal_values))
        return f"coalesce({normal_id_sql(name, column.type)} IN {known}, false)"
    known = parameters.listed(sorted(column.values))
    is_value = any_leaf_sql(
        name,
        column.column_type,
        lambda leaf: f"coalesce(CAST({leaf} AS STRING) IN {known}, false)",
    )
    if column.type not in INTEGERS:
        return is_value
    if not column.integers:
        return "false"
    if not column.has_statistics:
        return is_value
    # This leaves files out by their statistics.
    return f"({name} IN {parameters.listed(column.integers)} AND {is_value})"


def _is_blank(column: PersonColumn) -> str:
    return f"NOT {any_leaf_sql(identifier(column.name), column.column_type, _tells)}"


def _tells(leaf: str) -> str:
    return f"coalesce({normal_id_sql(leaf)} <> '', false)"
