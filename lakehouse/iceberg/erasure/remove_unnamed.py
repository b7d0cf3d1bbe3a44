"""Files that no metadata of any table names go at once, whatever their age.

Upkeep leaves them alone for a day, since a running write has such files too. Here nobody of this
home writes: the locks of all tables concerned are held, and where a branch still stages a write
nothing is removed. In Glue others write too, whom no lock of this home stops and who need no
branch, such as a compaction: there the young ones are left for a day all the same.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakehouse.errors import TableBusy
from lakehouse.iceberg.commit.branch import drop_abandoned_branches, is_audit
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.metadata.damaged_metadata import explain_table
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.location_files import LocationFile
from lakehouse.iceberg.metadata.named_files import all_named_files
from lakehouse.iceberg.metadata.own_files import list_own_files
from lakehouse.iceberg.upkeep.remove_orphans import (
    YOUNGEST,
    other_inside,
    tables_in_location,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.iceberg.upkeep.stored_files import bytes_of

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STEP: StepName = "remove_unnamed_files"
WAIT_SECONDS = 60.0
"""How long is waited for the lock of each table."""


def remove_unnamed(
    engine: Engine, tables: Sequence[str], *, wait_seconds: float = WAIT_SECONDS
) -> tuple[StepResult, ...]:
    """Remove the own files of some tables that no metadata of any table that the catalog lists
    names; seen to be gone by another listing.

    In Glue those younger than a day are left, and the result says until when.

    What lies where properties of theirs put files may be of a table of another catalog, and stays.

    It reads the manifests of all of these. In Glue they are, by `Engine.within`, those of the
    declared tables' databases: a table of others that names files here has no say over whether a
    person is erased from them, and the files of a whole account are neither read in an erasure
    nor need be readable. A table that is not there is left out.

    :returns: for each table `done`, `skipped` where there was nothing, `partial` with the paths
        that are still there or the moment at which the rest is due, or `failed` where a table of
        others lies among its files.
    :raises TableBusy: when a table, or one whose files lie among theirs, is being written.
    """
    there = [table for table in dict.fromkeys(tables) if engine.catalog.has(table)]
    concerned = set(there)
    for table in there:
        concerned |= set(tables_in_location(engine, table))
    with _all_locks(engine, sorted(concerned), wait_seconds):
        # Listed first: what another host commits meanwhile has a name by then.
        own = {table: list_own_files(engine.catalog.load(table)) for table in there}
        named = named_by_any(engine)
        return tuple(
            _remove(engine, table, _without_named(files, named)) for table, files in own.items()
        )


@contextmanager
def _all_locks(engine: Engine, tables: Sequence[str], wait_seconds: float) -> Iterator[None]:
    """Hold the locks of tables, always in one order, so that no two callers wait for each
    other.
    """
    with ExitStack() as locks:
        for table in tables:
            log = locks.enter_context(table_lock(engine, table, wait_seconds))
            drop_abandoned_branches(engine, table, log)
            refuse_where_written(engine, table)
        yield


def refuse_where_written(engine: Engine, table: str) -> None:
    """Refuse to go on where a branch stages a write.

    :raises TableBusy: names the branch.
    """
    staged = sorted(filter(is_audit, read_history(engine, table).refs))
    if staged:
        raise TableBusy(
            f"{table} has the branch {staged[0]}, on which another host may be writing; expected"
            " no write under way where files are removed at once.",
            next_step="Wait for its end, or drop the branch, and run this again.",
        )


def named_by_any(engine: Engine) -> frozenset[str]:
    """Return what the metadata of all tables that a catalog lists names, by `path_key`."""
    named: set[str] = set()
    for table in engine.catalog.tables():
        with explain_table(table):
            named |= all_named_files(engine.catalog.load_for_files(table)).keys()
    return frozenset(named)


def _remove(engine: Engine, table: str, unnamed: Mapping[str, LocationFile]) -> StepResult:
    if not unnamed:
        return StepResult(table, _STEP, "skipped", "each file in its location has a name")
    loaded = engine.catalog.load(table)
    paths = [file.path for file in unnamed.values()]
    if other := other_inside(engine, loaded, paths):
        return StepResult(table, _STEP, "failed", other)
    young = {} if engine.catalog.is_embedded else _young(unnamed)
    removed = {key: file for key, file in unnamed.items() if key not in young}
    for file in removed.values():
        loaded.io.delete(file.path)
        _remove_checksum(loaded, file.path)
    left = removed.keys() & list_own_files(loaded).keys()
    gone = [file for key, file in removed.items() if key not in left]
    step_metrics: dict[str, float] = {
        "removed_files": len(gone),
        "removed_bytes": bytes_of(gone),
    }
    if left:
        remaining = tuple(removed[key].path for key in sorted(left))
        reason = f"{len(left)} files could not be deleted"
        return StepResult(table, _STEP, "partial", reason, step_metrics, remaining)
    if young:
        due = max(file.modified_at for file in young.values()) + YOUNGEST
        reason = (
            f"{len(young)} files without a name may be of a write on another host, and are removed"
            f" from {due:%Y-%m-%d %H:%M} UTC on"
        )
        step_metrics["due_at"] = due.timestamp()
        return StepResult(table, _STEP, "partial", reason, step_metrics)
    return StepResult(table, _STEP, "done", "", step_metrics)


def _young(files: Mapping[str, LocationFile]) -> Mapping[str, LocationFile]:
    """Return the files that are not yet a day old, by `path_key`."""
    oldest = datetime.now(UTC) - YOUNGEST
    return {key: file for key, file in files.items() if file.modified_at > oldest}


def unnamed_files(loaded: "Table", named: Collection[str]) -> Mapping[str, LocationFile]:
    """Return a table's own files that are not among the named ones, by `path_key`."""
    return _without_named(list_own_files(loaded), named)


def _without_named(
    files: Mapping[str, LocationFile], named: Collection[str]
) -> Mapping[str, LocationFile]:
    return {key: file for key, file in files.items() if key not in named}


def _remove_checksum(loaded: "Table", path: str) -> None:
    """Remove the checksum that Hadoop keeps beside a local file, which no listing shows."""
    folder, _, name = path.rpartition("/")
    checksum = f"{folder}/.{name}.crc"
    if path.startswith("file:") and loaded.io.new_input(checksum).exists():
        loaded.io.delete(checksum)
