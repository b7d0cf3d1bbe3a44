"""What readers of a table must find as it was after any upkeep: rows, schema and refs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import is_of_write
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, Snapshot, history_of, read_history

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class ReadersView:
    """What a table is to its readers but for main's rows, which writers change at any time."""

    schema_id: int
    partitioning: str
    """The fields of the partition spec that is written by."""
    refs: dict[str, int]
    """Tags and branches that have no end and belong to no write, but main."""

    @classmethod
    def of(cls, table: "Table") -> "ReadersView":
        """Take it from a table that PyIceberg has loaded."""
        refs = {}
        for name, ref in table.metadata.refs.items():
            is_kept = name != MAIN and ref.max_ref_age_ms is None
            if is_kept and not is_of_write(name):
                refs[name] = ref.snapshot_id
        return cls(table.schema().schema_id, str(table.spec()), refs)

    def changes(self, later: "ReadersView") -> list[str]:
        """Return in words what upkeep never changes and that is not as it was."""
        changes = []
        if self.schema_id != later.schema_id:
            changes.append(f"schema {self.schema_id} became {later.schema_id}")
        if self.partitioning != later.partitioning:
            changes.append(f"partition spec {self.partitioning} became {later.partitioning}")
        for name, snapshot_id in self.refs.items():
            now = later.refs.get(name)
            if now != snapshot_id:
                changes.append(f"{name} pointed at snapshot {snapshot_id}, and now at {now}")
        return changes


def changed_row_counts(
    engine: Engine, table: str, since: History, predicate: str = ""
) -> list[str]:
    """Return in words where a rewrite since a moment left another number of rows than before.

    Each run of `replace` snapshots on main is compared with what it was made from, so that the
    writes of others between them do not matter. Without delete files, metadata has the numbers;
    else Spark counts, since a delete file may count rows of files that are gone, or one row
    twice.

    :param predicate: of the rows that were rewritten, in Spark SQL, where it is known.
    """
    changes = []
    now = read_history(engine, table)
    for before, after in _rewrites(now, set(since.snapshots)):
        rows_before, rows_after = _rows(engine, table, before, after, predicate)
        if rows_before != rows_after:
            changes.append(
                f"{rows_before} rows became {rows_after} from snapshot {before.snapshot_id} to"
                f" {after.snapshot_id}"
            )
    return changes


def _rewrites(history: History, known: set[int]) -> list[tuple[Snapshot, Snapshot]]:
    """Return the runs of rewrites on main that came after the known snapshots: what each was
    made from, and its last one.
    """
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


def _rows(
    engine: Engine, table: str, before: Snapshot, after: Snapshot, predicate: str
) -> tuple[int, int]:
    has_deletes = before.count("total-delete-files") or after.count("total-delete-files")
    if not has_deletes:
        return before.count("total-records"), after.count("total-records")
    return _counted(engine, table, before, predicate), _counted(engine, table, after, predicate)


def _counted(engine: Engine, table: str, snapshot: Snapshot, predicate: str) -> int:
    rows = engine.sql(
        f"SELECT count(*) FROM {engine.catalog.sql_name(table)} VERSION AS OF"
        f" {snapshot.snapshot_id}{f' WHERE {predicate}' if predicate else ''}"
    )
    return int(rows.collect()[0][0])


def view_of(engine: Engine, table: str) -> tuple[ReadersView, History]:
    """Read what readers see of a table, and its history."""
    loaded = engine.catalog.load(table)
    return ReadersView.of(loaded), history_of(table, loaded)
