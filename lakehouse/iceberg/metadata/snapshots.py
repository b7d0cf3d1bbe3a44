"""A table's snapshots, refs and commit properties as values; no JVM."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lakehouse.errors import SnapshotNotFound
from lakehouse.iceberg.catalog.damaged_metadata import explain_table
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.commit_record import (
    REJECTED_SHA256,
    CommitProperties,
)
from lakehouse.iceberg.metadata.manifests import (
    LiveFile,
    dangling_deletes,
    read_live_files,
    read_manifests,
)
from lakehouse.iceberg.metadata.unchanged_watermarks import UnchangedRun

if TYPE_CHECKING:
    from pyiceberg.table import Table


def count_rows(table: "Table", snapshot_id: int) -> int:
    """Return the row count: rows of data files minus live position deletes.

    Parquet delete files for several data files are read, since some can be removed.
    """
    files = list(read_live_files(table, read_manifests(table, snapshot_id)))
    dangling = set(dangling_deletes(files))
    data = [file for file in files if file.content == "data"]
    paths = {file.path for file in data}
    rows = sum(file.rows for file in data)
    for file in files:
        if file.content == "position deletes" and file not in dangling:
            is_read = file.deletes_from is None and file.path.endswith(".parquet")
            rows -= _positions_in(table, file, paths) if is_read else file.rows
    return rows


def _positions_in(table: "Table", delete_file: LiveFile, paths: AbstractSet[str]) -> int:
    """Return the number of positions in a delete file that apply to existing data files."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow.parquet import ParquetFile

    with table.io.new_input(delete_file.path).open() as opened:
        parquet = ParquetFile(pa.BufferReader(opened.read()))
    deleted_from = parquet.read(columns=["file_path"]).column("file_path")
    is_there = pc.is_in(deleted_from, value_set=pa.array(sorted(paths), pa.string()))
    return len(deleted_from.filter(is_there))


MAIN = "main"


@dataclass(frozen=True)
class Snapshot:
    """One snapshot, with commit properties if the lakehouse made it."""

    snapshot_id: int
    parent_id: int | None
    schema_id: int | None
    committed_at: datetime
    operation: str
    summary: Mapping[str, str]
    count_live_rows: Callable[[], int] | None = field(default=None, compare=False, repr=False)
    """Counts the rows from the files; None if the totals of the summary are correct."""

    @cached_property
    def commit(self) -> CommitProperties | None:
        """The lakehouse's properties of the commit; None for a commit of another tool."""
        return CommitProperties.from_summary(self.summary)

    def count(self, key: str) -> int:
        """Return a number of the summary, such as `added-records`; 0 if it is missing."""
        return int(self.summary.get(key, 0))

    @property
    def rewrites_rows(self) -> bool:
        """Whether rows were removed or can have changed; a `replace` only moves rows."""
        return self.operation not in ("append", "replace")

    @property
    def is_erasure(self) -> bool:
        """Whether it erased data subjects; each table with their rows has such a commit."""
        return self.commit is not None and self.commit.kind == "erasure"

    @property
    def is_write(self) -> bool:
        """Whether rows were written; False for upkeep and evolution."""
        return self.operation != "replace" and (
            self.commit is None or self.commit.kind == "write"
        )

    @property
    def is_rejection(self) -> bool:
        return REJECTED_SHA256 in self.summary

    @property
    def is_first_snapshot(self) -> bool:
        """Whether it is the table's first snapshot; PyIceberg's expiry clears parent ids."""
        return self.parent_id is None and self.rows == self.count("added-records")

    @property
    def is_empty(self) -> bool:
        """Whether no data file has a row, deleted or not."""
        return self.count("total-records") == 0 and (self.has_totals or self.rows == 0)

    @property
    def has_totals(self) -> bool:
        """Whether its summary contains row counts, which other tools can omit."""
        return "total-records" in self.summary

    @cached_property
    def rows(self) -> int:
        """Rows of the table as of this snapshot, without deleted ones.

        :raises TableDamaged: if rows are counted from the files and a manifest is missing.
        """
        if self.count_live_rows is not None:
            return self.count_live_rows()
        return self.count("total-records") - self.count("total-position-deletes")


@dataclass(frozen=True)
class History:
    """A table's snapshots and refs, read from one metadata file."""

    table: str
    snapshots: Mapping[int, Snapshot]
    refs: Mapping[str, int]
    log: tuple[tuple[datetime, int], ...]
    """Time and id of each snapshot that became current on main, oldest first."""
    properties: Mapping[str, str]

    @property
    def main(self) -> Snapshot | None:
        """The current snapshot of main; None before the first publish."""
        return self.head(MAIN)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was published yet, or no data file of main has a row."""
        return self.main is None or self.main.is_empty

    @cached_property
    def line(self) -> tuple[Snapshot, ...]:
        """Main and its retained ancestors, newest first."""
        return tuple(self.ancestors(self.refs.get(MAIN)))

    @cached_property
    def unchanged_run(self) -> UnchangedRun:
        """The last run that changed no row; main can have moved since."""
        return UnchangedRun.from_properties(self.properties)

    @property
    def last_write(self) -> Snapshot | None:
        """The newest snapshot that rows were written by, without compaction and evolution."""
        for snapshot in self.line:
            is_evolution = snapshot.commit is not None and snapshot.commit.kind == "evolution"
            if snapshot.operation != "replace" and not is_evolution:
                return snapshot
        return None

    def head(self, ref: str) -> Snapshot | None:
        """Return the snapshot of a branch or tag; None if there is no such ref."""
        snapshot_id = self.refs.get(ref)
        return None if snapshot_id is None else self.snapshots[snapshot_id]

    def ancestors(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """Yield the snapshot and its retained ancestors, newest first."""
        while snapshot_id is not None and snapshot_id in self.snapshots:
            snapshot = self.snapshots[snapshot_id]
            yield snapshot
            snapshot_id = snapshot.parent_id

    def between(self, since_id: int, until_id: int) -> list[Snapshot] | None:
        """Return the later snapshots up to `until_id`, oldest first; None if no ancestor."""
        snapshots: list[Snapshot] = []
        for snapshot in self.ancestors(until_id):
            if snapshot.snapshot_id == since_id:
                return snapshots[::-1]
            snapshots.append(snapshot)
        # The start can have expired while its child still has its id.
        is_connected = bool(snapshots) and snapshots[-1].parent_id == since_id
        return snapshots[::-1] if is_connected else None

    def kept_between(self, since_id: int | None, until_id: int) -> list[Snapshot] | None:
        """Return `between`; None also if there is no start, or it has expired."""
        if since_id is None or since_id not in self.snapshots:
            return None
        return self.between(since_id, until_id)

    def appends_between(self, since_id: int | None, until_id: int) -> list[Snapshot] | None:
        """Return `kept_between`; None also if rows changed, except by an early erasure."""
        added = self.kept_between(since_id, until_id)
        return None if added is None or first_rewriting(added) else added

    def watermark(self, source: str) -> int | None:
        """Return the snapshot of `source` that main was last computed from."""
        if self.main is None:
            return None
        unchanged = self.unchanged_run
        if unchanged.snapshot_id == self.main.snapshot_id and source in unchanged.inputs:
            return unchanged.inputs[source]
        for snapshot in self.line:
            if snapshot.commit and source in snapshot.commit.inputs:
                return snapshot.commit.inputs[source]
        return None

    def outside_partitions(self, source: str) -> tuple[str | None, ...]:
        """Return the values of `source` rows that were in no partition as of the watermark."""
        for snapshot in self.line:
            if snapshot.commit and source in snapshot.commit.inputs:
                return snapshot.commit.outside_partitions.get(source, ())
        return ()

    def has_published(self, write_id: str) -> bool:
        """Whether a commit of this write is an ancestor of main."""
        commits = (snapshot.commit for snapshot in self.line)
        return any(commit and commit.write_id == write_id for commit in commits)

    @property
    def written_at(self) -> datetime | None:
        """When rows were last published, within the retained history; None if never.

        Commits that only remove a rejected delivery are skipped.
        """
        rejected_at = None
        for at, snapshot_id in reversed(self.log):
            snapshot = self.snapshots.get(snapshot_id)
            if snapshot and snapshot.is_rejection:
                rejected_at = at
            elif snapshot and snapshot.is_write:
                return at
        return rejected_at

    def seen_at(self, timestamp: datetime) -> Snapshot | None:
        """Return the snapshot that was current at a timestamp; None if it is unknown."""
        for made_current_at, snapshot_id in reversed(self.log):
            if made_current_at <= timestamp:
                return self.snapshots.get(snapshot_id)
        return None

    def at(self, timestamp: datetime) -> Snapshot:
        """Return the snapshot that was current at a timestamp.

        :raises SnapshotNotFound: if the table had none yet, or the history does not reach back.
        """
        snapshot = self.seen_at(timestamp)
        if snapshot is None:
            oldest = self.log[0][0].isoformat() if self.log else "never written"
            raise SnapshotNotFound(
                f"{self.table} has no snapshot as of {timestamp.isoformat()}; its history starts"
                f" at {oldest}.",
                next_step=(
                    "Use a later timestamp; `lakehouse sql` on its history table lists the"
                    " snapshots."
                ),
            )
        return snapshot


def first_rewriting(snapshots: Sequence[Snapshot]) -> Snapshot | None:
    """Return the first snapshot that prevents an incremental read; None if there is none.

    An erasure before the first append is skipped, since each table is erased separately.
    """
    has_appended = False
    for snapshot in snapshots:
        is_passed_over = snapshot.is_erasure and not has_appended
        if snapshot.rewrites_rows and not is_passed_over:
            return snapshot
        may_have_rows = snapshot.count("added-records") > 0 or not snapshot.has_totals
        has_appended |= snapshot.operation == "append" and may_have_rows
    return None


def read_history(engine: Engine, table: str) -> History:
    """Read a table's snapshots and refs from one metadata file, without a JVM.

    :raises TableNotFound: if the catalog has no such table.
    """
    return history_of(table, engine.catalog.load(table))


def history_of(name: str, table: "Table") -> History:
    """Return the history of a table that PyIceberg has loaded."""
    metadata = table.metadata
    snapshots: dict[int, Snapshot] = {}
    # In order of age, so that parents precede children.
    for kept in sorted(metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0):
        summary = kept.summary
        snapshot = Snapshot(
            snapshot_id=kept.snapshot_id,
            parent_id=kept.parent_snapshot_id,
            schema_id=kept.schema_id,
            committed_at=from_milliseconds(kept.timestamp_ms),
            operation=summary.operation.value if summary else "",
            summary=dict(summary.additional_properties) if summary else {},
        )
        if not snapshot.has_totals or _may_have_dangling_deletes(snapshot, snapshots):
            count_live_rows = partial(_count_rows, name, table, kept.snapshot_id)
            snapshot = replace(snapshot, count_live_rows=count_live_rows)
        snapshots[kept.snapshot_id] = snapshot
    return History(
        table=name,
        snapshots=snapshots,
        refs={ref: target.snapshot_id for ref, target in metadata.refs.items()},
        log=tuple(
            (from_milliseconds(entry.timestamp_ms), entry.snapshot_id)
            for entry in metadata.snapshot_log
        ),
        properties=dict(metadata.properties),
    )


def _may_have_dangling_deletes(snapshot: Snapshot, earlier: Mapping[int, Snapshot]) -> bool:
    """Whether data files with position deletes can have been removed."""
    deletes = snapshot.count("total-position-deletes")
    if deletes == snapshot.count("added-position-deletes"):
        # A commit adds no deletes for a file that it removes.
        return False
    if snapshot.count("deleted-data-files"):
        return True
    parent = earlier.get(snapshot.parent_id) if snapshot.parent_id is not None else None
    return parent is None or parent.count_live_rows is not None


def _count_rows(name: str, table: "Table", snapshot_id: int) -> int:
    with explain_table(name):
        return count_rows(table, snapshot_id)


def from_milliseconds(timestamp_ms: int) -> datetime:
    """Convert milliseconds since 1970, as in Iceberg's metadata."""
    return datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC)
