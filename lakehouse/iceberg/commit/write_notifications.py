"""Report the start and outcome of each write to the listener, also of killed ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.commit_retries import Failure, classify
from lakehouse.iceberg.metadata.snapshots import Snapshot, read_history
from lakehouse.iceberg.values.write_events import NO_LISTENER, BegunWrite
from lakehouse.iceberg.values.write_result import Outcome, Published
from lakehouse.tables.table import IcebergTable


@contextmanager
def notifying(engine: Engine, write: BegunWrite) -> Iterator[Callable[[Outcome], None]]:
    """Notify the listener of the start of a write; yields a function to report its outcome.

    After an interrupt or an unknown outcome, `report_unfinished` of the next writer reports it.
    """
    engine.listener.begun(write)
    try:
        yield partial(engine.listener.finished, write)
    except Exception as error:
        _report_failure(engine, write, error)
        raise


def report_unfinished(engine: Engine, table: IcebergTable) -> None:
    """Report writes whose writers are dead; requires the lock."""
    write_ids = engine.listener.unended(table.name)
    if not write_ids:
        return
    line = read_history(engine, table.name).line
    for write_id in write_ids:
        published = published_of(table.name, line, write_id)
        engine.listener.resolved(BegunWrite(table, write_id), published)


def _report_failure(engine: Engine, write: BegunWrite, error: Exception) -> None:
    if engine.listener is NO_LISTENER:
        return
    failure = classify(error)
    try:
        line = read_history(engine, write.table.name).line
    except Exception:
        # The cause of the failure can also prevent this read; the next writer reports the
        # outcome.
        return
    published = published_of(write.table.name, line, write.write_id)
    if published:
        engine.listener.resolved(write, published)
    elif failure is not Failure.UNKNOWN:
        is_own = failure in (Failure.OTHER, Failure.EXECUTORS_LOST)
        engine.listener.failed(write, error, had_conflict=not is_own)


def published_of(
    table: str, line: Sequence[Snapshot], write_id: str, *other_ids: str
) -> Published | None:
    """Return what a write published, from its commits on a line of snapshots, if any.

    :param other_ids: other writes whose commits it also published.
    """
    commits = [
        snapshot
        for snapshot in line
        if snapshot.commit and snapshot.commit.write_id in (write_id, *other_ids)
    ]
    if not commits:
        return None
    newest = commits[0]
    return Published(
        table=table,
        write_id=write_id,
        snapshot_id=newest.snapshot_id,
        operation=newest.operation,
        added_rows=sum(commit.count("added-records") for commit in commits),
        deleted_rows=sum(commit.count("deleted-records") for commit in commits),
        added_files=sum(commit.count("added-data-files") for commit in commits),
        added_bytes=sum(commit.count("added-files-size") for commit in commits),
        row_count=newest.rows,
    )
