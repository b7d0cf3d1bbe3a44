"""A table that was set back to a state before an erasure loses the same people's rows again, with
the next write.
"""

from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.erasure_commits import (
    REF_PROPERTY,
    REQUEST_PROPERTY,
)
from lakehouse.iceberg.erasure.suppression_list import RowFilter, subject_in
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, read_history
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.tables.person import Person
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable

SET_BACK = "set-back"
"""What stands as the request where rows are erased that came back with an older state."""


def erase_again(engine: Engine, table: IcebergTable, left_out: RowFilter) -> None:
    """Erase from main the rows of people who are gone, where main was set back behind an erasure;
    elsewhere metadata alone is read, and nothing while nobody is gone.

    :raises TableBusy: when another process holds the table for longer than a writer waits.
    """
    if not left_out.is_active or not engine.catalog.has(table.name):
        return
    if not was_set_back(read_history(engine, table.name)):
        return
    main = read_main(engine, table.name)
    subject = subject_in(main.columns, table)
    theirs = left_out.split(table, main).suppressed
    if theirs is None or subject is None:
        return
    text = f"CAST({identifier(subject)} AS STRING)"
    ids = frozenset(row[0] for row in theirs.selectExpr(text).distinct().collect())
    if ids:
        delete_rows(engine, table, [Person(subject, ids)], SET_BACK)


def was_set_back(history: History) -> bool:
    """Whether main is at a state that an erasure of main does not lead to, and nobody's rows were
    erased again since.
    """
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
