"""Plan of a diff, from metadata only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.errors import SnapshotNotFound, UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.diff.diff_columns import SharedColumn, shared_columns
from lakehouse.iceberg.metadata.manifests import LiveFile, read_live_files, read_manifests
from lakehouse.iceberg.metadata.snapshots import MAIN, History, Snapshot, history_of
from lakehouse.iceberg.metadata.table_state import schema_at
from lakehouse.tables.quoting import in_values
from lakehouse.tables.table import IcebergTable, Merge
from lakehouse.tables.types import has_map

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table


MOST_VALUES = 1000
"""Maximum number of files in a predicate; with more, comparing more rows is cheaper."""


@dataclass(frozen=True)
class Touched:
    """The files that differ between two snapshots."""

    before: tuple[LiveFile, ...] = ()
    """Files that only the earlier snapshot has."""
    after: tuple[LiveFile, ...] = ()

    @property
    def all(self) -> tuple[LiveFile, ...]:
        return self.before + self.after

    @property
    def only_adds(self) -> bool:
        return not self.before and not any(file.content != "data" for file in self.after)

    @property
    def data_files(self) -> frozenset[str] | None:
        """The data files with different rows; None if a delete file does not name its own."""
        paths = [
            file.path if file.content == "data" else file.deletes_from for file in self.all
        ]
        return None if None in paths else frozenset(path for path in paths if path)


def touched_files(table: "Table", before: int | None, after: int | None) -> Touched:
    """Compare the manifests of two snapshots (None: no rows); shared ones are not opened."""
    earlier = [] if before is None else read_manifests(table, before)
    later = [] if after is None else read_manifests(table, after)
    earlier_files = _live_files(table, earlier, later)
    later_files = _live_files(table, later, earlier)
    return Touched(
        before=tuple(earlier_files[path] for path in earlier_files if path not in later_files),
        after=tuple(later_files[path] for path in later_files if path not in earlier_files),
    )


def _live_files(
    table: "Table", manifests: "list[ManifestFile]", excluded: "list[ManifestFile]"
) -> dict[str, LiveFile]:
    """Return the live files of the manifests without the excluded ones, by path."""
    shared = {manifest.manifest_path for manifest in excluded}
    own = (manifest for manifest in manifests if manifest.manifest_path not in shared)
    return {file.path: file for file in read_live_files(table, own)}


def resolve_snapshot_ref(history: History, ref: str | int) -> int | None:
    """Return the snapshot id of a reference; None for `main` of a table without snapshots.

    Names of tags and branches take precedence over ids and timestamps.

    :raises SnapshotNotFound: if there is no such snapshot, tag or branch, or none at that time;
        lists the alternatives.
    :raises UsageError: if a timestamp has no time zone.
    """
    text = str(ref).strip()
    if text in history.refs or text == MAIN:
        return history.refs.get(text)
    if text.isdecimal():
        return _snapshot(history, int(text))
    timestamp = _parse_timestamp(text)
    if timestamp is None:
        raise SnapshotNotFound(
            f"{history.table} has no tag or branch {text!r}, and that is neither a snapshot id"
            f" nor a timestamp; it has {', '.join(sorted(history.refs)) or 'no snapshot'}.",
            next_step=f"`lakehouse history {history.table}` lists its snapshots.",
        )
    if timestamp.tzinfo is None:
        raise UsageError(
            f"{text} has no time zone; expected one, such as {timestamp.isoformat()}Z for UTC."
        )
    return history.at(timestamp).snapshot_id


def published_before(history: History, snapshot_id: int) -> int | None:
    """Return the snapshot that was current before another was published; None if the table was
    empty.

    This is not always its parent: a write can make several commits on its branch, of which only
    the last is published.

    :raises SnapshotNotFound: if that snapshot has expired.
    """
    published = {published_id for _, published_id in history.log}
    ancestors = list(history.ancestors(snapshot_id))
    for ancestor in ancestors[1:]:
        if ancestor.snapshot_id in published:
            return ancestor.snapshot_id
    if ancestors[-1].parent_id is not None:
        raise SnapshotNotFound(
            f"{history.table} no longer keeps the snapshot before {snapshot_id}:"
            f" {ancestors[-1].parent_id} has expired.",
            next_step=(
                f"Use another one; `lakehouse history {history.table}` lists the retained"
                " snapshots."
            ),
        )
    return None


def _snapshot(history: History, snapshot_id: int) -> int:
    if snapshot_id not in history.snapshots:
        raise SnapshotNotFound(
            f"{history.table} has no snapshot {snapshot_id}; it keeps {len(history.snapshots)}"
            " snapshots.",
            next_step=(
                f"It may have expired; `lakehouse history {history.table}` lists the retained"
                " snapshots."
            ),
        )
    return snapshot_id


def _parse_timestamp(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Diff:
    """A planned comparison of two snapshots; no row is read yet.

    `before` and `after` are snapshot ids; None is the table before its first snapshot.
    """

    table: str
    before: int | None
    after: int | None
    key: tuple[str, ...]
    columns: tuple[SharedColumn, ...]
    touched: Touched
    is_append: bool
    """Whether an incremental read between the snapshots returns the changed rows."""

    @property
    def where(self) -> str | None:
        """Predicate of the rows that can differ; None for all."""
        paths = self.touched.data_files
        if paths is None or len(paths) > MOST_VALUES:
            return None
        return in_values("_file", paths)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def terms(self, snapshot_id: int | None) -> list[str]:
        """Return the SQL that reads each column in one of the two snapshots."""
        if snapshot_id is None:
            # A table without a snapshot has no schema to read.
            return [f"CAST(NULL AS {column.type})" for column in self.columns]
        if snapshot_id == self.after:
            return [column.after for column in self.columns]
        return [column.before for column in self.columns]

    @property
    def is_empty(self) -> bool:
        """Whether metadata shows that no row differs."""
        return not self.touched.all

    @property
    def change_column(self) -> str:
        """Name of the column with the kind of change; `_change` if `change` is taken."""
        lowered = [name.lower() for name in self.names]
        return "_change" if "change" in lowered else "change"


def plan_diff(
    engine: Engine,
    table: str,
    since: str | int | None = None,
    until: str | int = MAIN,
    key: Sequence[str] = (),
) -> Diff:
    """Plan a diff; starts no JVM.

    :param since: a snapshot id, a tag, a branch, or a timestamp with time zone such as
        `2026-01-31T08:00:00Z`; defaults to the snapshot published before `until`.
    :param until: the same; defaults to `main`.
    :param key: columns that identify a row; see `declared_key`.
    :raises SnapshotNotFound: if the table has no such snapshot, tag, branch or timestamp.
    :raises UsageError: if the key has a column that neither snapshot has, or one that cannot be
        compared.
    """
    loaded = engine.catalog.load(table)
    history = history_of(table, loaded)
    after = resolve_snapshot_ref(history, until)
    if since is not None:
        before = resolve_snapshot_ref(history, since)
    else:
        before = None if after is None else published_before(history, after)
    earlier = schema_at(loaded, after if before is None else before)
    later = schema_at(loaded, after)
    columns = shared_columns(loaded.schema(), earlier, later)
    commits = _commits_between(history, before, after)
    touched = Touched()
    if commits is None or any(
        commit.operation != "append" or commit.count("added-records") > 0 for commit in commits
    ):
        touched = touched_files(loaded, before, after)
    return Diff(
        table=table,
        before=before,
        after=after,
        key=_check_key(table, key, columns),
        columns=columns,
        touched=touched,
        # An incremental read knows the current names only.
        is_append=commits is not None
        and all(commit.operation == "append" for commit in commits)
        and later == loaded.schema(),
    )


def declared_key(table: IcebergTable) -> tuple[str, ...]:
    """Return the key of a table's merge, versions or unique rule; empty without one."""
    if isinstance(table.write, Merge):
        return tuple(table.write.on)
    if table.versions:
        return tuple(table.versions.of)
    return next((rule.columns for rule in table.rules if rule.identifies_rows), ())


def _commits_between(
    history: History, before: int | None, after: int | None
) -> list[Snapshot] | None:
    """Return the commits between two snapshots without compactions; None if unrelated."""
    if before == after:
        return []
    between = None if before is None or after is None else history.between(before, after)
    if between is None:
        return None
    return [snapshot for snapshot in between if snapshot.operation != "replace"]


def _check_key(
    table: str, key: Sequence[str], columns: Sequence[SharedColumn]
) -> tuple[str, ...]:
    """Return the key with the columns' spelling."""
    names = {column.name.lower(): column.name for column in columns if not has_map(column.type)}
    unknown = [name for name in key if name.lower() not in names]
    if unknown:
        raise UsageError(
            f"The key of {table} has {', '.join(map(repr, unknown))}; expected columns of"
            f" {', '.join(names)}."
        )
    return tuple(names[name.lower()] for name in key)
