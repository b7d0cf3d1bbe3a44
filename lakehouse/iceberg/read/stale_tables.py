"""Tables that are older than their sources; no JVM, no Dagster events."""

from collections.abc import Iterable

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, read_history

_CHANGED_ROWS = (
    "added-records",
    "deleted-records",
    # With merge-on-read, rows are removed without a change of files.
    "added-position-deletes",
    "added-equality-deletes",
)


def is_stale(engine: Engine, target: str, sources: Iterable[str]) -> bool:
    """Whether a table was not yet computed from the current rows of its sources."""
    known = read_history(engine, target) if engine.catalog.has(target) else None
    return any(
        has_news(read_history(engine, name), known)
        for name in sources
        if engine.catalog.has(name)
    )


def has_news(source: History, target: History | None) -> bool:
    """Whether rows of a source changed since the target was last computed from it."""
    if source.main is None:
        return False
    since = target.watermark(source.table) if target else None
    if since is None:
        return not source.main.is_empty
    added = source.between(since, source.main.snapshot_id)
    return added is None or any(_changes_rows(snapshot) for snapshot in added)


def _changes_rows(snapshot: Snapshot) -> bool:
    # Compaction only replaces files, and an evolution only sets properties. Erasure is applied
    # to each table separately.
    if snapshot.operation == "replace" or snapshot.is_erasure:
        return False
    return any(snapshot.count(name) > 0 for name in _CHANGED_ROWS)
