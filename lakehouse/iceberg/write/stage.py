"""How rows are put on a write's branch: one function for each way to change a table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.iceberg.commit.retry import Failure, classify
from lakehouse.iceberg.commit.snapshot_properties import NO_SETTINGS, session_with, writer_with
from lakehouse.iceberg.metadata.frame_joins import (
    same_key_sql,
    settings_to_join_few,
    sized,
)
from lakehouse.iceberg.write.merge_row_level import row_level_chosen
from lakehouse.iceberg.write.prepared_frame import DELETED, written_columns
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2

_IN_PARTS = (
    "some, but not all, rows match",
    "does not support overwrite by expression",
    "Cannot convert Spark predicate to Iceberg expression",
)
"""How errors say that Iceberg cannot replace by a predicate: a file answers it only in part, or
Spark cannot tell it, as of a column that is cast; so says Iceberg 1.7.1 on Spark 3.5, then 1.12.
"""


def append(attempt: Attempt, rows: "DataFrame") -> None:
    """Add rows."""
    _commit(attempt, lambda: _writer(attempt, rows).append())


def delete(attempt: Attempt, predicate: str) -> None:
    """Delete rows."""
    _execute(attempt, f"DELETE FROM {attempt.target} WHERE {predicate}")


def delete_keys(attempt: Attempt, keys: "DataFrame", key: Sequence[str]) -> None:
    """Delete the rows that have any of some keys, each of which is given once."""
    with _as_view(attempt, keys) as source:
        _execute(
            attempt,
            f"MERGE INTO {attempt.target} t USING {source} s ON {same_key_sql(key, 't', 's')}"
            " WHEN MATCHED THEN DELETE",
        )


def overwrite(attempt: Attempt, rows: "DataFrame", predicate: str) -> None:
    """Replace the rows that a predicate matches, also by none.

    Iceberg replaces whole files; where a file answers the predicate only in part, as after a
    change of the partition spec, the rows are deleted and the new ones added, in two commits on
    the branch; so they are where Spark cannot tell Iceberg the predicate.
    """
    from pyspark.sql.functions import expr

    try:
        _commit(attempt, lambda: _writer(attempt, rows).overwrite(expr(predicate)))
    except Exception as error:
        if not any(reason in str(error) for reason in _IN_PARTS):
            raise
        delete(attempt, predicate)
        append(attempt, rows)


def merge(
    attempt: Attempt,
    rows: "DataFrame",
    mode: Merge,
    matching: str = "true",
    *,
    inserted: int,
    matched: int,
    all_go: bool = False,
) -> None:
    """Insert, update or delete rows by their key; each of them is known to be new, different,
    or to go.

    :param matching: a SQL predicate on the table's rows, as `t`, that any of them can match.
    :param inserted: how many of the rows are new, exactly.
    :param matched: how many update or delete one that is there.
    :param all_go: whether these delete all.
    """
    columns = [identifier(name) for name in written_columns(attempt.table)]
    values = {column: f"s.{column}" for column in columns}
    if mode.stamp:
        values[identifier(mode.stamp)] = "current_timestamp()"
    # Only the key belongs into ON: a column that may change would let a second row in.
    on = same_key_sql(mode.on, "t", "s")
    on = on if matching == "true" else f"{on} AND {matching}"
    delete = f"WHEN MATCHED AND s.{DELETED} THEN DELETE " if DELETED in rows.columns else ""
    insert = (
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(values)}) VALUES"
        f" ({', '.join(values.values())})"
    )
    # Rows that may be new are kept by an outer join, for which the table is shuffled however
    # few they are; but for the rows that match none of them, where it is large.
    rows = rows if inserted else sized(rows, matched)
    update = (
        "WHEN MATCHED THEN UPDATE SET"
        f" {', '.join(f't.{column} = {value}' for column, value in values.items())} "
    )
    with _as_view(attempt, rows) as source:
        statement = (
            f"MERGE INTO {attempt.target} t USING {source} s ON {on} {delete}"
            f"{'' if all_go else update}{insert if inserted else ''}"
        )
        with row_level_chosen(attempt, matched) as row_level:
            settings = settings_to_join_few(inserted + matched)
            _execute(attempt, statement, row_level, settings)


@contextmanager
def _as_view(attempt: Attempt, rows: "DataFrame") -> Iterator[str]:
    """Give rows a name in SQL for a moment."""
    source = f"merge_source_{uuid4().hex}"
    rows.createOrReplaceTempView(source)
    try:
        yield source
    finally:
        attempt.engine.spark.catalog.dropTempView(source)


def _writer(attempt: Attempt, rows: "DataFrame") -> "DataFrameWriterV2":
    return writer_with(rows.writeTo(attempt.target), attempt.properties.to_summary())


def _execute(
    attempt: Attempt,
    statement: str,
    row_level: str = "",
    settings: Mapping[str, str] = NO_SETTINGS,
) -> None:
    """Run a statement whose commit takes its snapshot properties from the session."""
    properties = replace(attempt.properties, row_level=row_level)
    with session_with(attempt.engine.spark, properties.to_summary(), settings):
        _commit(attempt, lambda: attempt.engine.sql(statement))


def _commit(attempt: Attempt, action: Callable[[], object]) -> None:
    """Commit to the branch; a commit whose outcome is unknown is looked up by its write id,
    never repeated blindly.
    """
    before = attempt.history().refs.get(attempt.branch)
    try:
        action()
    except Exception as error:
        if classify(error) is not Failure.UNKNOWN:
            raise
        head = attempt.history().head(attempt.branch)
        if (
            head is None
            or head.snapshot_id == before
            or not head.commit
            or head.commit.write_id != attempt.write_id
        ):
            raise
