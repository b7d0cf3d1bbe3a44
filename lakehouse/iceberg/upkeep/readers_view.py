"""Properties that upkeep must not change for readers: rows, schema and refs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import is_of_write
from lakehouse.iceberg.metadata.snapshots import (
    MAIN,
    History,
    Snapshot,
    history_of,
    read_history,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class ReadersView:
    """The state of a table for readers, except main's rows, which writers change at any time."""

    schema_id: int
    partitioning: str
    """The fields of the current partition spec."""
    refs: dict[str, int]
    """Users' tags and branches without a retention period, except main."""

    @classmethod
    def of(cls, table: "Table") -> "ReadersView":
        """Create it from a table that PyIceberg has loaded."""
        refs = {}
        for name, ref in table.metadata.refs.items():
            is_kept = name != MAIN and ref.max_ref_age_ms is None
            if is_kept and not is_of_write(name):
                refs[name] = ref.snapshot_id
        return cls(table.schema().schema_id, str(table.spec()), refs)

    def changes(self, later: "ReadersView") -> list[str]:
        """Return messages about differences that upkeep must not cause."""
        changes = []
        for name in ("schema_id", "partitioning"):
            before, after = getattr(self, name), getattr(later, name)
            if before != after:
                changes.append(f"{name} {before} became {after}")
        for name, snapshot_id in self.refs.items():
            now = later.refs.get(name)
            if now != snapshot_id:
                changes.append(f"{name} pointed at snapshot {snapshot_id}, and now at {now}")
        return changes


def changed_row_counts(engine: Engine, table: str, since: History) -> list[str]:
    """Return messages about rewrites that changed the number of rows.

    Each run of `replace` snapshots on main is compared with its parent, so that writes in
    between do not matter. Without delete files, metadata is sufficient; otherwise Spark counts,
    since delete files can include removed data files, or a row twice.
    """
    changes = []
    now = read_history(engine, table)
    for before, after in _rewrites(now, set(since.snapshots)):
        has_deletes = any(s.count("total-delete-files") for s in (before, after))
        rows_before, rows_after = (
            _count_rows(engine, table, s) if has_deletes else s.count("total-records")
            for s in (before, after)
        )
        if rows_before != rows_after:
            changes.append(
                f"{rows_before} rows became {rows_after} from snapshot {before.snapshot_id} to"
                f" {after.snapshot_id}"
            )
    return changes


def _rewrites(history: History, known: set[int]) -> list[tuple[Snapshot, Snapshot]]:
    """Return the parent and the last snapshot of each run of new rewrites on main."""
    runs: list[tuple[Snapshot, Snapshot]] = []
    end: Snapshot | None = None
    for snapshot in history.line:
        if snapshot.operation == "replace" and snapshot.snapshot_id not in known:
            end = end or snapshot
            continue
        if end is not None:
            runs.append((snapshot, end))
        end = None
        if snapshot.snapshot_id in known:
            break
    return runs


def _count_rows(engine: Engine, table: str, snapshot: Snapshot) -> int:
    rows = engine.sql(
        f"SELECT count(*) FROM {engine.catalog.sql_name(table)} VERSION AS OF"
        f" {snapshot.snapshot_id}"
    )
    return int(rows.collect()[0][0])


def view_of(engine: Engine, table: str) -> tuple[ReadersView, History]:
    """Return the reader-visible state of a table, and its history."""
    loaded = engine.catalog.load(table)
    return ReadersView.of(loaded), history_of(table, loaded)
