"""Erases people again from a table that was rolled back to a snapshot before their erasure."""

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.erasure_commits import REF_PROPERTY, REQUEST_PROPERTY
from lakehouse.iceberg.erasure.suppression_list import RowFilter, subject_in
from lakehouse.iceberg.metadata.snapshots import MAIN, History, read_history
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.tables.person import Person
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable

SET_BACK = "set-back"
"""The request in the commit properties of such an erasure."""


def erase_again(engine: Engine, table: IcebergTable, row_filter: RowFilter) -> None:
    """Erase suppressed data subjects if main was rolled back to before an erasure.

    :raises TableBusy: if another process holds the table for longer than a writer waits.
    """
    if not row_filter.is_active or not engine.catalog.has(table.name):
        return
    if not was_set_back(read_history(engine, table.name)):
        return
    main = read_main(engine, table.name)
    subject = subject_in(main.columns, table)
    suppressed = row_filter.split(table, main).suppressed
    if suppressed is None or subject is None:
        return
    text = f"CAST({identifier(subject)} AS STRING)"
    ids = frozenset(row[0] for row in suppressed.selectExpr(text).distinct().collect())
    if ids:
        delete_rows(engine, table, [Person(subject, ids)], SET_BACK)


def was_set_back(history: History) -> bool:
    """Return whether an erasure of main is not in main's line, and was not repeated since."""
    line = {snapshot.snapshot_id for snapshot in history.line}
    lost = [
        snapshot.committed_at
        for snapshot in history.snapshots.values()
        if snapshot.is_erasure
        and snapshot.summary.get(REF_PROPERTY) == MAIN
        and snapshot.snapshot_id not in line
    ]
    if not lost:
        return False
    return not any(
        snapshot.summary.get(REQUEST_PROPERTY) == SET_BACK and snapshot.committed_at > max(lost)
        for snapshot in history.line
    )
