"""Append a few rows without a JVM, by PyIceberg; for internal tables without audited rules.

It uses the table's lock, commit properties and the catalog's compare-and-swap. It needs no
branch: there is nothing to audit, and this process commits one file atomically, so no Spark
server can commit after its client died.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.errors import DeclarationError, WriteConflict
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.commit.commit_retries import (
    DIRECT_APPEND_ATTEMPTS,
    Failure,
    classify,
    pause,
)
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.write_notifications import (
    notifying,
    published_of,
)
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import MAIN, history_of
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_events import BegunWrite
from lakehouse.iceberg.values.write_result import Published
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

LOCK_SECONDS = 30.0
DIRECT_APPENDS = {"commit.retry.num-retries": "0", "commit.manifest-merge.enabled": "true"}
"""Table properties for direct appends: a retry inside PyIceberg would not check again for the
run, and each append adds a small file and a manifest.
"""


def append_once(
    engine: Engine,
    table: IcebergTable,
    rows: Sequence[Mapping[str, Any]],
    run_id: str,
    *,
    made_at: str,
) -> int | None:
    """Append a run's rows in one commit; return its snapshot, or None if the table has rows of
    the run.

    Each run adds a small file, which upkeep compacts.

    :param table: appends once by `run_id`, without rules; it is created if it does not exist.
    :param made_at: the column with the time of a row; no row of the run is older.
    :raises TableBusy: if another process holds the lock for longer than half a minute.
    :raises WriteConflict: after repeated conflicts with other writers.
    """
    since = min(row[made_at] for row in rows)

    def missing_rows(loaded: "Table") -> Sequence[Mapping[str, Any]]:
        return () if has_run(loaded, run_id, since) else rows

    return append_next(engine, table, missing_rows, run_id)


def append_next(
    engine: Engine,
    table: IcebergTable,
    next_rows: "Callable[[Table], Sequence[Mapping[str, Any]]]",
    run_id: str,
) -> int | None:
    """Append rows that depend on the table's content, in one commit; return its snapshot, or
    None if there are none.

    :param next_rows: returns the rows for the current table; called again after a conflict.
    :raises TableBusy: if another process holds the lock for longer than half a minute.
    :raises WriteConflict: after repeated conflicts with other writers.
    """
    if not table.is_log_of_runs:
        raise DeclarationError(
            f"{table.name} is appended to without an audit; expected Append by run_id, and no"
            " rule."
        )
    with table_lock(engine, table.name, LOCK_SECONDS):
        planning.ensure(engine, table, run_id)
        for number in range(1, DIRECT_APPEND_ATTEMPTS + 1):
            loaded = engine.catalog.load(table.name)
            rows = next_rows(loaded)
            if not rows:
                return None
            write = BegunWrite(table, new_write_id(), Run(run_id))
            try:
                with notifying(engine, write) as report_outcome:
                    published = _append(loaded, write, rows)
                    report_outcome(published)
                    return published.snapshot_id
            except Exception as error:
                if classify(error) is Failure.OTHER:
                    raise
                last = error
            pause(number)
    raise WriteConflict(
        f"{table.name} was not written: other writers came first"
        f" {DIRECT_APPEND_ATTEMPTS} times, last with {last}.",
        next_step="Nothing was lost; the next run retries it.",
    ) from last


def has_run(loaded: "Table", run_id: str, since: datetime) -> bool:
    """Whether a table has rows of a run; `since` is the time of its oldest row.

    Files are only scanned if the commits are not sufficient: some since then have expired, or
    were made by other tools and changed rows.
    """
    line = history_of(".".join(loaded.name()), loaded).line
    if any(
        snapshot.commit and (snapshot.commit.kind, snapshot.commit.run_id) == ("write", run_id)
        for snapshot in line
    ):
        return True
    reaches_back = not line or line[-1].is_first_snapshot or line[-1].committed_at < since
    if reaches_back and all(
        snapshot.commit or snapshot.operation == "replace" for snapshot in line
    ):
        return False
    from pyiceberg.expressions import EqualTo

    # mypy sees pydantic's fields instead of PyIceberg's constructor.
    of_run = EqualTo("run_id", run_id)  # type: ignore[call-arg,arg-type]
    scan = loaded.scan(row_filter=of_run, selected_fields=("run_id",), limit=1)
    return scan.to_arrow().num_rows > 0


def _append(loaded: "Table", write: BegunWrite, rows: Sequence[Mapping[str, Any]]) -> Published:
    import pyarrow as pa

    table, run_id = write.table, write.run.run_id
    properties = CommitProperties(
        "write", write.write_id, run_id, declaration=table.declaration_hash
    )
    schema = loaded.schema().as_arrow()
    records = []
    for row in rows:
        records.append({name: _in_utc(row.get(name)) for name in schema.names})
    loaded.append(
        pa.Table.from_pylist(records, schema),
        snapshot_properties=properties.to_summary(),
        branch=MAIN,
    )
    line = history_of(table.name, loaded).line
    published = published_of(table.name, line, write.write_id)
    assert published is not None
    return published


def _in_utc(value: Any) -> Any:
    """Convert a timestamp to UTC; without a zone it is local time."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value
