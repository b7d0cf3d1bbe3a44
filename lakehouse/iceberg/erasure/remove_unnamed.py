"""Files that no metadata of any table names go at once, whatever their age.

Upkeep leaves them alone for a day, since a running write has such files too. Here nobody writes:
the locks of all tables concerned are held, and where a branch still stages a write nothing is
removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from lakehouse.errors import TableBusy
from lakehouse.iceberg.commit.branch import drop_dead_branches, is_audit
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.metadata.damaged_metadata import explain_table
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.location_files import LocationFile
from lakehouse.iceberg.metadata.named_files import all_named_files
from lakehouse.iceberg.metadata.own_files import list_own_files
from lakehouse.iceberg.upkeep.remove_orphans import other_inside, tables_in_location
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

    What lies where properties of theirs put files may be of a table of another catalog, and stays.

    It reads the manifests of all of these. In Glue they are, by `Engine.within`, those of the
    declared tables' databases: a table of others that names files here has no say over whether a
    person is erased from them, and the files of a whole account are neither read in an erasure
    nor need be readable. A table that is not there is left out.

    :returns: for each table `done`, `skipped` where there was nothing, `partial` with the paths
        that are still there, or `failed` where a table of others lies among its files.
    :raises TableBusy: when a table, or one whose files lie among theirs, is being written.
    """
    there = [table for table in dict.fromkeys(tables) if engine.catalog.has(table)]
    concerned = set(there)
    for table in there:
        concerned |= set(tables_in_location(engine, table))
    with _all_locks(engine, sorted(concerned), wait_seconds):
        named = named_by_any(engine)
        return tuple(_remove(engine, table, named) for table in there)


@contextmanager
def _all_locks(engine: Engine, tables: Sequence[str], wait_seconds: float) -> Iterator[None]:
    """Hold the locks of tables, always in one order, so that no two callers wait for each
    other.
    """
    with ExitStack() as locks:
        for table in tables:
            log = locks.enter_context(table_lock(engine, table, wait_seconds))
            drop_dead_branches(engine, table, log)
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


def _remove(engine: Engine, table: str, named: frozenset[str]) -> StepResult:
    loaded = engine.catalog.load(table)
    unnamed = unnamed_files(loaded, named)
    if not unnamed:
        return StepResult(table, _STEP, "skipped", "each file in its location has a name")
    paths = [file.path for file in unnamed.values()]
    if other := other_inside(engine, loaded, paths):
        return StepResult(table, _STEP, "failed", other)
    for file in unnamed.values():
        loaded.io.delete(file.path)
        _remove_checksum(loaded, file.path)
    left = unnamed_files(loaded, named)
    removed = [file for key, file in unnamed.items() if key not in left]
    figures = {"removed_files": len(removed), "removed_bytes": bytes_of(removed)}
    if left:
        remaining = tuple(file.path for file in left.values())
        reason = f"{len(left)} files could not be deleted"
        return StepResult(table, _STEP, "partial", reason, figures, remaining)
    return StepResult(table, _STEP, "done", "", figures)


def unnamed_files(loaded: "Table", named: frozenset[str]) -> Mapping[str, LocationFile]:
    """Return a table's own files that are not among the named ones, by `path_key`."""
    listed = list_own_files(loaded)
    return {key: file for key, file in listed.items() if key not in named}


def _remove_checksum(loaded: "Table", path: str) -> None:
    """Remove the checksum that Hadoop keeps beside a local file, which no listing shows."""
    folder, _, name = path.rpartition("/")
    checksum = f"{folder}/.{name}.crc"
    if path.startswith("file:") and loaded.io.new_input(checksum).exists():
        loaded.io.delete(checksum)
