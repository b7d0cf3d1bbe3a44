"""Report the start and outcome of each write to the listener."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.commit_retries import Failure, classify
from lakehouse.iceberg.metadata.snapshots import Snapshot, read_history
from lakehouse.iceberg.values.write_events import NO_LISTENER, BegunWrite
from lakehouse.iceberg.values.write_result import Outcome, Published


@contextmanager
def notifying(engine: Engine, write: BegunWrite) -> Iterator[Callable[[Outcome], None]]:
    """Notify the listener of the start of a write; yields a function to report its outcome.

    An interrupt has no outcome.
    """
    engine.listener.begun(write)
    try:
        yield partial(engine.listener.finished, write)
    except Exception as error:
        _report_failure(engine, write, error)
        raise


def _report_failure(engine: Engine, write: BegunWrite, error: Exception) -> None:
    if engine.listener is NO_LISTENER:
        return
    try:
        line = read_history(engine, write.table.name).line
    except Exception:
        # The cause of the failure can also prevent this read.
        line = ()
    if published := published_of(write.table.name, line, write.write_id):
        engine.listener.finished(write, published)
    else:
        had_conflict = classify(error) in (Failure.MOVED, Failure.CONFLICT, Failure.BUSY)
        engine.listener.failed(write, error, had_conflict=had_conflict)


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
