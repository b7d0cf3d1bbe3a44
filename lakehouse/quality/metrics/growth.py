"""How many rows a table grew by in a day, by time travel; told by its snapshots, without a
scan.
"""

from datetime import datetime, tzinfo

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.erasure.erasure_commits import rows_erased_between
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History, history_of


def growth_since_midnight(
    catalog: Catalog, table: str, snapshot_id: int, at: datetime, zone: tzinfo
) -> int | None:
    """Return the rows of a snapshot, less those that readers saw when its day began; None where
    that is not kept, or the table was dropped since. Rows of people that were erased since count
    as if they were there still.

    The day begins at the table's midnight, and not 24 hours before: a file that comes at nine
    each day, give or take minutes, would be counted twice on some days and on others not at
    all.
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
    # What it had lost by midnight, it had lost then.
    erased = rows_erased_between(history, seen.snapshot_id, snapshot_id) if seen else 0
    return rows + erased - before


def midnight_of(at: datetime, zone: tzinfo) -> datetime:
    """Return the start of a day in a time zone."""
    return at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)


def rows_before(history: History, midnight: datetime) -> int | None:
    """Return the rows that readers saw at midnight; 0 where the table began since, None where
    history is lost.
    """
    if (
        history.log
        and midnight < history.log[0][0]
        and history.line
        and history.line[-1].begins
    ):
        return 0
    seen = history.seen_at(midnight)
    return seen.rows if seen else None
