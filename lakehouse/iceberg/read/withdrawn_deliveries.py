"""Deliveries that a user withdrew from a source, and rows of erased data subjects.

The commit that removes a delivery names it. A write with such a commit in its inputs records
that too, so that its downstream tables follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.metadata.commit_record import PREFIX, REJECTED_SHA256, TAKES_OUT
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, read_history
from lakehouse.iceberg.metadata.table_state import names_at
from lakehouse.iceberg.metadata.type_conversion import of_spark
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.tables.quoting import identifier, json_of, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE, _SHA256 = f"{PREFIX}rejected-file", REJECTED_SHA256
_BY, _WHY = f"{PREFIX}rejected-by", f"{PREFIX}rejected-for"
_READ_NOW = ("incremental", "latest")


@dataclass(frozen=True)
class RejectedDelivery:
    """A delivery, by its file name and content hash."""

    source_file: str
    sha256: str

    @property
    def predicate(self) -> str:
        """The SQL predicate of its rows, in each table with source columns."""
        return (
            f"(_source_file = {literal(self.source_file)} AND _source_sha256 ="
            f" {literal(self.sha256)})"
        )

    @property
    def deleted_by(self) -> str:
        """The SQL predicate to delete its rows, so that the commit gets its properties.

        If a predicate selects entire files, Spark deletes them from metadata only, without the
        session's snapshot properties. This predicate prevents that.
        """
        file, sha256 = literal(self.source_file), literal(self.sha256)
        pruning = f"_source_file BETWEEN {file} AND {file}"
        return (
            f"({pruning} AND concat(_source_sha256, _source_file) = concat({sha256}, {file}))"
        )

    def to_summary(self, *, by: str, why: str) -> dict[str, str]:
        """Return the snapshot properties of the commit that removes its rows."""
        delivery = {_FILE: self.source_file, _SHA256: self.sha256}
        return {**delivery, _BY: by, _WHY: why}


@dataclass(frozen=True)
class Withdrawn:
    """Deliveries removed from a source since a table was last computed from it.

    `commits` are the removing snapshots, oldest first. `since` is the snapshot that the table
    was computed from; None if unknown.
    """

    source: str
    since: int | None
    until: int
    commits: tuple[Snapshot, ...]

    @property
    def deliveries(self) -> list[RejectedDelivery]:
        """The named deliveries; empty if the source itself follows other tables."""
        named_rows = {
            (commit.summary[_FILE], commit.summary[_SHA256])
            for commit in self.commits
            if _SHA256 in commit.summary
        }
        return [RejectedDelivery(*delivery) for delivery in sorted(named_rows)]


def withdrawn_by_source(
    engine: Engine,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    target: History,
    *,
    with_erasures: bool = False,
) -> dict[str, Withdrawn]:
    """Return the withdrawn deliveries by source, since the target was last computed; no JVM.

    :param with_erasures: whether to include erasures: all retained ones, even if the target was
        computed since.
    """
    read_now = {
        declared.table: pins[name]
        for name, declared in inputs.items()
        if declared.mode in _READ_NOW
    }
    by_source: dict[str, Withdrawn] = {}
    for source, pin in read_now.items():
        if source == target.table or pin.snapshot_id is None:
            continue
        since = target.watermark(source)
        commits = _commits(engine, source, since, pin.snapshot_id, with_erasures)
        if commits:
            by_source[source] = Withdrawn(source, since, pin.snapshot_id, commits)
    return by_source


def _commits(
    engine: Engine, table: str, since: int | None, until: int, with_erasures: bool
) -> tuple[Snapshot, ...]:
    is_behind = since not in (None, until)
    if not is_behind and not with_erasures:
        return ()
    source = read_history(engine, table)
    line = [*source.ancestors(until)][::-1]
    # If the start has expired, all retained commits count; following them twice has no effect.
    after = source.between(since, until) or line if since and is_behind else []
    commits = set()
    for commit in after:
        if commit.is_rejection or commit.summary.get(TAKES_OUT) == "true":
            commits.add(commit.snapshot_id)
    for commit in line if with_erasures else ():
        if commit.is_erasure and commit.operation != "replace":
            commits.add(commit.snapshot_id)
    return tuple(commit for commit in line if commit.snapshot_id in commits)


def rows_withdrawn(engine: Engine, withdrawn: Withdrawn) -> "DataFrame":
    """Return the rows that rejections removed from a source, with its current columns."""
    history = read_history(engine, withdrawn.source)
    frames = [read(engine, Pin(withdrawn.source, withdrawn.until)).where("false")]
    for commit in withdrawn.commits:
        removed_rows = _rows_of_delivery if _SHA256 in commit.summary else _difference
        rows = removed_rows(engine, history, withdrawn, commit)
        if rows is not None:
            frames.append(rows)
    return union_all(frames)


def _rows_of_delivery(
    engine: Engine, history: History, withdrawn: Withdrawn, commit: Snapshot
) -> "DataFrame | None":
    """Return the rows of a delivery that the table was computed from."""
    is_kept = withdrawn.since in history.snapshots
    at = withdrawn.since if is_kept else commit.parent_id
    if at is None or at not in history.snapshots:
        return None
    delivery = RejectedDelivery(commit.summary[_FILE], commit.summary[_SHA256])
    return _as_now(engine, withdrawn, at, delivery.predicate)


def _difference(
    engine: Engine, history: History, withdrawn: Withdrawn, commit: Snapshot
) -> "DataFrame | None":
    """Return the rows that a commit replaced or deleted."""
    if commit.parent_id is None or commit.parent_id not in history.snapshots:
        return None
    before, after = (
        _as_now(engine, withdrawn, at) for at in (commit.parent_id, commit.snapshot_id)
    )
    row_hash = f"sha2({json_of('struct(*)', keeps_nulls=True)}, 256) AS __row"
    return (
        before.selectExpr("*", row_hash)
        .join(after.selectExpr(row_hash), "__row", "left_anti")
        .drop("__row")
    )


def _as_now(engine: Engine, withdrawn: Withdrawn, at: int, where: str = "true") -> "DataFrame":
    """Return a past state of a source with its current column names and types."""
    names = names_at(engine.catalog.load(withdrawn.source), withdrawn.until, at)
    now = read(engine, Pin(withdrawn.source, withdrawn.until)).schema.fields
    then = ((field, names.get(field.name)) for field in now)
    terms = (
        f"CAST({identifier(past) if past else 'NULL'} AS {of_spark(field.dataType)}) AS"
        f" {identifier(field.name)}"
        for field, past in then
    )
    return read(engine, Pin(withdrawn.source, at), where).selectExpr(*terms)
