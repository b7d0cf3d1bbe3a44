"""The number of rows that a table gained in a day, from snapshot metadata without a scan."""

from datetime import datetime, tzinfo

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.erasure.erasure_commits import rows_erased_between
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History, history_of


def growth_since_midnight(
    catalog: Catalog, table: str, snapshot_id: int, at: datetime, zone: tzinfo
) -> int | None:
    """Return the row count of a snapshot minus that at the start of its day. None if that is
    unknown or the table was dropped. Rows erased since count as existing.

    The day starts at the table's midnight, not 24 hours earlier: a file that arrives at about
    nine each day would otherwise be counted twice on some days and not at all on others.
    """
    try:
        history = history_of(table, catalog.load(table))
    except TableNotFound:
        return None
    if snapshot_id not in history.snapshots:
        return None
    rows, midnight = history.snapshots[snapshot_id].rows, midnight_of(at, zone)
    before = rows_before(history, midnight)
    if before is None:
        return None
    seen = history.seen_at(midnight)
    # Rows lost before midnight do not count.
    erased = rows_erased_between(history, seen.snapshot_id, snapshot_id) if seen else 0
    return rows + erased - before


def midnight_of(at: datetime, zone: tzinfo) -> datetime:
    """Return the start of a day in a time zone."""
    return at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)


def rows_before(history: History, midnight: datetime) -> int | None:
    """Return the row count at midnight; 0 if the table is newer, None if the history expired."""
    if (
        history.log
        and midnight < history.log[0][0]
        and history.line
        and history.line[-1].is_first_snapshot
    ):
        return 0
    seen = history.seen_at(midnight)
    return seen.rows if seen else None
