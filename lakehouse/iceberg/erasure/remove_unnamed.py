"""Removes unreferenced files of some tables, also at once; no JVM.

A running write has such files too. Therefore the locks of all affected tables are held, and
nothing is removed while a branch stages a write. In Glue, other hosts can write without a lock of
this home: files younger than a day are retained there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from lakehouse.errors import TableBusy
from lakehouse.iceberg.catalog.damaged_metadata import explain_table
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import drop_abandoned_branches, is_audit
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.metadata.referenced_files import all_named_files, list_own_files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.metadata.table_locations import LocationFile
from lakehouse.iceberg.upkeep.remove_orphans import (
    YOUNGEST,
    bytes_of,
    other_inside,
    tables_in_location,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

STEP: StepName = "remove_unnamed_files"
WAIT_SECONDS = 60.0
"""Wait for the lock of each table."""


def remove_unnamed(
    engine: Engine, tables: Sequence[str], *, keeps_young: bool = False
) -> tuple[StepResult, ...]:
    """Remove the own files of some tables that no metadata of any listed table references.

    Files in folders that properties name can belong to another catalog, and are retained. In
    Glue, only the databases of declared tables are read (`Engine.within`).

    :param keeps_young: whether to retain files younger than a day, as always in Glue.
    :returns: for each table `done`, `skipped` without unreferenced files, `partial` with the
        paths that could not be deleted or the time at which young files are due, or `failed` if
        another table is among its files.
    :raises TableBusy: if a table, or one whose files are in its location, is being written.
    """
    existing = [table for table in dict.fromkeys(tables) if engine.catalog.has(table)]
    affected = set(existing)
    for table in existing:
        affected |= set(tables_in_location(engine, table))
    with _all_locks(engine, sorted(affected)):
        # Listed first: another host can commit them meanwhile.
        own = {table: list_own_files(engine.catalog.load(table)) for table in existing}
        named = named_by_any(engine)
        keeps_young = keeps_young or not engine.catalog.is_embedded
        results = []
        for table, files in own.items():
            unnamed = {key: file for key, file in files.items() if key not in named}
            results.append(_remove(engine, table, unnamed, keeps_young=keeps_young))
        return tuple(results)


@contextmanager
def _all_locks(engine: Engine, tables: Sequence[str]) -> Iterator[None]:
    """Hold the locks of tables, always in the same order to prevent deadlocks."""
    with ExitStack() as locks:
        for table in tables:
            log = locks.enter_context(table_lock(engine, table, WAIT_SECONDS))
            drop_abandoned_branches(engine, table, log)
            require_not_written(engine, table)
        yield


def require_not_written(engine: Engine, table: str) -> None:
    """Check that no branch stages a write.

    :raises TableBusy: names the branch.
    """
    staged = sorted(filter(is_audit, read_history(engine, table).refs))
    if staged:
        raise TableBusy(
            f"{table} has the branch {staged[0]}, on which another host may be writing; expected"
            " no active write when files are removed at once.",
            next_step="Wait for its end, or drop the branch, and run this again.",
        )


def named_by_any(engine: Engine) -> frozenset[str]:
    """Return the files that the metadata of all listed tables references, by `path_key`."""
    named: set[str] = set()
    for table in engine.catalog.tables():
        with explain_table(table):
            named |= all_named_files(engine.catalog.load_for_files(table)).keys()
    return frozenset(named)


def _remove(
    engine: Engine, table: str, unnamed: Mapping[str, LocationFile], *, keeps_young: bool
) -> StepResult:
    if not unnamed:
        return StepResult(table, STEP, "skipped", "each file in its location is referenced")
    loaded = engine.catalog.load(table)
    if other := other_inside(engine, loaded, [file.path for file in unnamed.values()]):
        return StepResult(table, STEP, "failed", other)
    oldest = datetime.now(UTC) - YOUNGEST
    removing = {
        key: file
        for key, file in unnamed.items()
        if not keeps_young or file.modified_at <= oldest
    }
    for file in removing.values():
        loaded.io.delete(file.path)
        # No listing shows the checksum that Hadoop writes next to a local file.
        folder, _, name = file.path.rpartition("/")
        checksum = f"{folder}/.{name}.crc"
        if file.path.startswith("file:") and loaded.io.new_input(checksum).exists():
            loaded.io.delete(checksum)
    remaining = removing.keys() & list_own_files(loaded).keys()
    removed = [file for key, file in removing.items() if key not in remaining]
    step_metrics: dict[str, float] = {
        "removed_files": len(removed),
        "removed_bytes": bytes_of(removed),
    }
    if remaining:
        paths = tuple(removing[key].path for key in sorted(remaining))
        reason = f"{len(paths)} files could not be deleted"
        return StepResult(table, STEP, "partial", reason, step_metrics, paths)
    young = [file for key, file in unnamed.items() if key not in removing]
    if young:
        due_at = max(file.modified_at for file in young) + YOUNGEST
        reason = (
            f"{len(young)} orphan files can belong to a running write, and can be removed from"
            f" {due_at:%Y-%m-%d %H:%M} UTC on"
        )
        step_metrics["due_at"] = due_at.timestamp()
        return StepResult(table, STEP, "partial", reason, step_metrics)
    return StepResult(table, STEP, "done", "", step_metrics)
