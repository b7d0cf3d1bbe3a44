"""How many rows a table grew by in a day, by time travel; told by its snapshots, without a
scan.
"""

from datetime import datetime, tzinfo

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History, history_of


def growth_since_midnight(
    catalog: Catalog, table: str, snapshot_id: int, at: datetime, zone: tzinfo
) -> int | None:
    """Return the rows of a snapshot, less those that readers saw when its day began; None where
    that is not kept.

    The day begins at the table's midnight, and not 24 hours before: a file that comes at nine
    each day, give or take minutes, would be counted twice on some days and on others not at
    all.
    """
    history = history_of(table, catalog.load(table))
    if snapshot_id not in history.snapshots:
        return None
    before = rows_before(history, at, zone)
    return None if before is None else history.snapshots[snapshot_id].rows - before


def rows_before(history: History, at: datetime, zone: tzinfo) -> int | None:
    """Return the rows that readers saw at midnight; 0 where the table began since, None where
    history is lost.
    """
    midnight = at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if (
        history.log
        and midnight < history.log[0][0]
        and history.line
        and history.line[-1].begins
    ):
        return 0
    seen = history.seen_at(midnight)
    return seen.rows if seen else None
