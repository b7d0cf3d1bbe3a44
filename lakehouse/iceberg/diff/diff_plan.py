"""Plan of a diff, from metadata only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.diff.columns import SharedColumn, shared_columns
from lakehouse.iceberg.diff.files import (
    Touched,
    file_predicate,
    partition_predicate,
    touched_files,
)
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, Snapshot, history_of
from lakehouse.iceberg.metadata.snapshot_refs import published_before, resolve_snapshot_ref
from lakehouse.iceberg.metadata.table_state import schema_at
from lakehouse.tables.table import IcebergTable, Merge
from lakehouse.tables.types import has_map

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


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
    where_before: str | None = None
    """Predicate of rows that can differ in the earlier snapshot; None for all."""
    where_after: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
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
    if commits is None or any(map(_may_change_rows, commits)):
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
        where_before=_where(loaded, earlier, touched),
        where_after=_where(loaded, later, touched),
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


def _may_change_rows(commit: Snapshot) -> bool:
    return commit.operation != "append" or commit.count("added-records") > 0


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


def _where(table: "Table", schema: "Schema", touched: Touched) -> str | None:
    predicates = [partition_predicate(table, schema, touched.all), file_predicate(touched)]
    return " AND ".join(filter(None, predicates)) or None
