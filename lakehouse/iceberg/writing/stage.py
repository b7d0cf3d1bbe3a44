"""How rows are put on a write's branch: one function for each way to change a table."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.history import History, Snapshot, read_history
from lakehouse.iceberg.joins import sized
from lakehouse.iceberg.outcome import Pin
from lakehouse.iceberg.quoting import identifier
from lakehouse.iceberg.rejections import TakenOut
from lakehouse.iceberg.run import Run
from lakehouse.iceberg.spans import text
from lakehouse.iceberg.stamp import Stamp
from lakehouse.iceberg.table import IcebergTable, Merge
from lakehouse.iceberg.writing.branch import audit_branch
from lakehouse.iceberg.writing.candidate import DELETED, written_columns
from lakehouse.iceberg.writing.leaving import Decided
from lakehouse.iceberg.writing.retry import Failure, classify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

_SESSION_PROPERTY = "spark.sql.iceberg.snapshot-property."
_session_properties = Lock()
"""A session has one set of properties for all threads; a commit that is given its own has none of them."""
_PARTLY_MATCHING_FILE = "some, but not all, rows match"


@dataclass(frozen=True)
class Attempt:
    """One try at a write: its branch, what it branched off, and what it reads."""

    engine: Engine
    table: IcebergTable
    run: Run
    write_id: str
    base: Snapshot
    """The snapshot that the branch started at; that of an empty table has no rows."""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """By table, the snapshot that the whole target is computed from once this is published."""
    since: Mapping[str, int] = field(default_factory=dict)
    """By table, the snapshot after which it was read for the run's partitions; none where they are computed anew."""
    taken_out: Mapping[str, TakenOut] = field(default_factory=dict)
    """By table, what rejections took out of it since the target was last computed."""
    decided: Decided = field(default_factory=Decided)
    """What this write says anew what becomes of."""
    leaving: "list[DataFrame]" = field(default_factory=list)
    """Keys of rows of the quarantine that leave it, once this is published."""
    left_out: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """By table, the values of the rows that belonged to no partition as of the watermark."""

    @property
    def branch(self) -> str:
        """The branch that is written."""
        return audit_branch(self.write_id)

    @property
    def target(self) -> str:
        """The branch's quoted name in SQL."""
        return self.engine.catalog.sql_name(self.table.name, branch=self.branch)

    @property
    def stamp(self) -> Stamp:
        """What the commits of this attempt are stamped with."""
        partitions = self.run.partitions
        pins = (pin for pin in self.pins.values() if pin.table != self.table.name)
        return Stamp(
            kind="write",
            write_id=self.write_id,
            run_id=self.run.run_id,
            partitions=self.run.partition_values,
            inputs=self.watermarks,
            declaration=self.table.declaration_hash,
            read={pin.table: pin.snapshot_id for pin in pins if pin.snapshot_id} if partitions else {},
            since=self.since,
            spans=tuple((text(low), text(high)) for low, high in partitions.spans) if partitions else (),
            takes_out=bool(self.taken_out),
            left_out=self.left_out,
        )

    def history(self) -> History:
        """Read the table's snapshots and refs as they are now."""
        return read_history(self.engine, self.table.name)

    def existing(self) -> "DataFrame":
        """Return the rows that the branch started with."""
        name = self.engine.catalog.sql_name(self.table.name)
        return self.engine.spark.read.option("versionAsOf", str(self.base.snapshot_id)).table(name)


def append(attempt: Attempt, rows: "DataFrame") -> None:
    """Add rows."""
    _commit(attempt, lambda: _writer(attempt, rows).append())


def delete(attempt: Attempt, predicate: str) -> None:
    """Delete rows."""
    _stamped_sql(attempt, f"DELETE FROM {attempt.target} WHERE {predicate}")


def overwrite(attempt: Attempt, rows: "DataFrame", predicate: str) -> None:
    """Replace the rows that a predicate matches, also by none.

    Iceberg replaces whole files; where a file answers the predicate only in part, as after a change of the partition
    spec, the rows are deleted and the new ones added, in two commits on the branch.
    """
    from pyspark.sql.functions import expr

    try:
        _commit(attempt, lambda: _writer(attempt, rows).overwrite(expr(predicate)))
    except Exception as error:
        if _PARTLY_MATCHING_FILE not in str(error):
            raise
        delete(attempt, predicate)
        append(attempt, rows)


def merge(attempt: Attempt, rows: "DataFrame", mode: Merge, near: str = "true", *, count: int, inserts: bool) -> None:
    """Insert, update or delete rows by their key; each of them is known to be new, different, or to go.

    :param near: a SQL predicate on the table's rows, as `t`, that any of them can match.
    :param count: how many rows these are, exactly.
    :param inserts: whether any of them is new.
    """
    columns = [identifier(name) for name in written_columns(attempt.table)]
    values = {column: f"s.{column}" for column in columns}
    if mode.stamp:
        values[identifier(mode.stamp)] = "current_timestamp()"
    # Only the key belongs into ON: a column that may change would let a second row in.
    on = " AND ".join(f"t.{identifier(key)} <=> s.{identifier(key)}" for key in mode.on)
    on = on if near == "true" else f"{on} AND {near}"
    delete = f"WHEN MATCHED AND s.{DELETED} THEN DELETE " if DELETED in rows.columns else ""
    insert = f"WHEN NOT MATCHED THEN INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"
    source = f"merge_source_{uuid4().hex}"
    # Rows that may be new are kept by an outer join, for which the table is shuffled however few they are.
    rows = rows if inserts else sized(rows, count)
    rows.createOrReplaceTempView(source)
    try:
        _stamped_sql(
            attempt,
            f"MERGE INTO {attempt.target} t USING {source} s ON {on} {delete}"
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{column} = {value}' for column, value in values.items())} "
            f"{insert if inserts else ''}",
        )
    finally:
        attempt.engine.spark.catalog.dropTempView(source)


def _writer(attempt: Attempt, rows: "DataFrame") -> "DataFrameWriterV2":
    writer = rows.writeTo(attempt.target)
    for key, value in attempt.stamp.to_summary().items():
        writer = writer.option(f"snapshot-property.{key}", value)
    return writer


def _stamped_sql(attempt: Attempt, statement: str) -> None:
    """Run a statement whose commit takes its snapshot properties from the session."""
    with with_properties(attempt.engine.spark, attempt.stamp.to_summary()):
        _commit(attempt, lambda: attempt.engine.sql(statement))


@contextmanager
def with_properties(spark: "SparkSession", properties: Mapping[str, str]) -> Iterator[None]:
    """Let the commits of SQL statements have these snapshot properties."""
    named = {f"{_SESSION_PROPERTY}{key}": value for key, value in properties.items()}
    with _session_properties:
        try:
            for key, value in named.items():
                spark.conf.set(key, value)
            yield
        finally:
            for key in named:
                spark.conf.unset(key)


def _commit(attempt: Attempt, action) -> None:  # noqa: ANN001
    """Commit to the branch; a commit whose outcome is unknown is looked up by its write id, never repeated blindly."""
    before = attempt.history().refs.get(attempt.branch)
    try:
        action()
    except Exception as error:
        if classify(error) is not Failure.UNKNOWN:
            raise
        head = attempt.history().head(attempt.branch)
        if head is None or head.snapshot_id == before or not head.stamp or head.stamp.write_id != attempt.write_id:
            raise
