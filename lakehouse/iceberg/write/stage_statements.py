"""Staging of rows on a write's branch: one function per write mode."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.iceberg.commit.commit_retries import Failure, classify
from lakehouse.iceberg.commit.snapshot_properties import (
    NO_SETTINGS,
    session_with,
    set_property,
    writer_with,
)
from lakehouse.iceberg.evolve.row_level_mode import choose_for_merge, is_chosen
from lakehouse.iceberg.frames.broadcast_joins import same_key_sql, settings_to_join_few, sized
from lakehouse.iceberg.write.prepared_frame import DELETED, written_columns
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import Merge
from lakehouse.tables.table_properties import COPY_ON_WRITE, MERGE_PROPERTY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2


@contextmanager
def row_level_chosen(attempt: Attempt, changed_rows: int) -> Iterator[str]:
    """Use the cheapest row-level mode for the merge in this block.

    Yields the mode and the reason; empty if the declaration sets the mode. Iceberg reads the
    mode only from table properties, so another mode is set during the merge, in 0.04 s. After a
    failure it stays until the next write applies the declaration.

    :param changed_rows: number of rows that the merge updates or deletes.
    """
    if not is_chosen(attempt.table):
        yield ""
        return
    base, loaded = attempt.base, attempt.engine.catalog.load(attempt.table.name)
    current = loaded.properties.get(MERGE_PROPERTY, COPY_ON_WRITE)
    chosen = choose_for_merge(
        current,
        loaded.metadata.format_version,
        base.count("total-records"),
        base.count("total-position-deletes"),
        changed_rows,
    )
    if chosen.mode == current:
        yield str(chosen)
        return
    set_property(attempt.engine, attempt.table.name, MERGE_PROPERTY, chosen.mode)
    yield str(chosen)
    set_property(attempt.engine, attempt.table.name, MERGE_PROPERTY, current)


_OVERWRITE_UNSUPPORTED = (
    "some, but not all, rows match",
    "does not support overwrite by expression",
    "Cannot convert Spark predicate to Iceberg expression",
)
"""Errors of an unsupported overwrite: only some rows of a file match the predicate, or Spark
cannot convert it, as for a column with a cast. Messages of Iceberg 1.7.1 on Spark 3.5, then
1.12.
"""


def append(attempt: Attempt, rows: "DataFrame") -> None:
    """Append rows."""
    _commit(attempt, lambda: _writer(attempt, rows).append())


def delete(attempt: Attempt, predicate: str) -> None:
    """Delete rows."""
    _execute(attempt, f"DELETE FROM {attempt.target} WHERE {predicate}")


def delete_keys(attempt: Attempt, keys: "DataFrame", key: Sequence[str]) -> None:
    """Delete the rows with any of some distinct keys."""
    with _as_view(attempt, keys) as source:
        _execute(
            attempt,
            f"MERGE INTO {attempt.target} t USING {source} s ON {same_key_sql(key, 't', 's')}"
            " WHEN MATCHED THEN DELETE",
        )


def overwrite(attempt: Attempt, rows: "DataFrame", predicate: str) -> None:
    """Replace the rows that match a predicate.

    Iceberg replaces entire files. If a file matches only in part, or Spark cannot convert the
    predicate, the rows are deleted and added in two commits on the branch.
    """
    from pyspark.sql.functions import expr

    try:
        _commit(attempt, lambda: _writer(attempt, rows).overwrite(expr(predicate)))
    except Exception as error:
        if not any(reason in str(error) for reason in _OVERWRITE_UNSUPPORTED):
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
    """Insert, update or delete rows by key; each row is known to be new, different or a delete.

    :param matching: SQL predicate on the table's rows `t` that can match.
    :param inserted: exact number of new rows.
    :param matched: number of updated or deleted rows.
    :param all_go: whether all matched rows are deletes.
    """
    columns = [identifier(name) for name in written_columns(attempt.table)]
    values = {column: f"s.{column}" for column in columns}
    if mode.stamp:
        values[identifier(mode.stamp)] = "current_timestamp()"
    # ON only contains the key: with a mutable column, a second row could be inserted.
    on = same_key_sql(mode.on, "t", "s")
    on = on if matching == "true" else f"{on} AND {matching}"
    delete = f"WHEN MATCHED AND s.{DELETED} THEN DELETE " if DELETED in rows.columns else ""
    insert = (
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(values)}) VALUES"
        f" ({', '.join(values.values())})"
    )
    # New rows require an outer join, which shuffles the table; a Bloom filter reduces a large
    # one.
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
    """Register rows as a temporary view."""
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
    """Run a statement whose commit gets its snapshot properties from the session."""
    properties = replace(attempt.properties, row_level=row_level)
    with session_with(attempt.engine.spark, properties.to_summary(), settings):
        _commit(attempt, lambda: attempt.engine.sql(statement))


def _commit(attempt: Attempt, action: Callable[[], object]) -> None:
    """Commit to the branch; after an unknown outcome, look for the write id."""
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
