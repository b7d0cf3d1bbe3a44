"""What a diff compares and where it looks, decided from metadata alone."""

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
    """Which two snapshots are compared, by what, and where their rows can differ; no row is
    read yet.

    `before` and `after` are snapshot ids; None stands for the table before its first snapshot.
    """

    table: str
    before: int | None
    after: int | None
    key: tuple[str, ...]
    columns: tuple[SharedColumn, ...]
    touched: Touched
    is_append: bool
    """Whether the rows to look at are those that an incremental read from the one to the other
    gives.
    """
    where_before: str | None = None
    """Predicate of the rows that may differ, under the names of the earlier snapshot; None for
    all.
    """
    where_after: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    def terms(self, snapshot_id: int | None) -> list[str]:
        """Return the SQL that reads each column in one of the two snapshots."""
        if snapshot_id is None:
            # Of a table that had no snapshot yet there is no schema to read it by.
            return [f"CAST(NULL AS {column.type})" for column in self.columns]
        if snapshot_id == self.after:
            return [column.after for column in self.columns]
        return [column.before for column in self.columns]

    @property
    def is_empty(self) -> bool:
        """Whether the metadata tells already that no row differs."""
        return not self.touched.all

    @property
    def change_column(self) -> str:
        """Name of the column that says what became of a row: `change`, or `_change` where the
        table has that one.
        """
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

    :param since: a snapshot id, a tag, a branch, or a moment with its time zone such as
        `2026-01-31T08:00:00Z`; where it is left out, what readers saw before `until`.
    :param until: the same; `main` where it is left out.
    :param key: columns that identify a row; `declared_key` tells those of a declared table.
    :raises SnapshotNotFound: when the table has no such snapshot, tag, branch or moment.
    :raises UsageError: when the key names a column that neither snapshot has, or one that
        cannot be compared.
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
    """Return what identifies a row by a table's declaration: the key of its merge, versions or
    uniqueness; or none.
    """
    if isinstance(table.write, Merge):
        return tuple(table.write.on)
    if table.versions:
        return tuple(table.versions.of)
    return next((rule.columns for rule in table.rules if rule.identifies_rows), ())


def _commits_between(
    history: History, before: int | None, after: int | None
) -> list[Snapshot] | None:
    """Return the commits between two snapshots but for compactions, which change no row; None
    where the later does not descend from the earlier.
    """
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
    """Return the key as the columns are spelled."""
    names = {column.name.lower(): column.name for column in columns if not has_map(column.type)}
    unknown = [name for name in key if name.lower() not in names]
    if unknown:
        raise UsageError(
            f"The key of {table} names {', '.join(map(repr, unknown))}; expected columns among"
            f" {', '.join(names)}."
        )
    return tuple(names[name.lower()] for name in key)


def _where(table: "Table", schema: "Schema", touched: Touched) -> str | None:
    predicates = [partition_predicate(table, schema, touched.all), file_predicate(touched)]
    return " AND ".join(filter(None, predicates)) or None
