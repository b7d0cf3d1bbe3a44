"""Exclude rows of erased data subjects, which a table may lack correctly."""

from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.suppression_list import RowFilter
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.tables.table import SOURCE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLEARED = "cleared"
"""Outcome of a missing row that a user cleared; reported only if there are any."""
ERASED = "erased"
"""Outcome of a missing row of an erased data subject; reported only if there are any."""


def may_have_erased(engine: Engine, source: Pin, left_out: RowFilter) -> bool:
    """Whether rows that were read of a source can belong to erased people; reads metadata only."""
    return left_out.is_active or _was_erased_since(engine, source)


def without_erased(
    engine: Engine, source: Pin, rows: "DataFrame", left_out: RowFilter
) -> "DataFrame":
    """Return a pinned source's rows without those erased since and those of erased data
    subjects.

    :param rows: rows with the columns of the source, and any others.
    """
    if _was_erased_since(engine, source):
        names = list(SOURCE_COLUMNS)
        now = read_main(engine, source.table).select(*names)
        rows = rows.join(now, names, "left_semi").select(*rows.columns)
    table = left_out.suppression.tables.get(source.table)
    return rows if table is None else left_out.split(table, rows).rows


def _was_erased_since(engine: Engine, source: Pin) -> bool:
    history = read_history(engine, source.table)
    return source.snapshot_id is not None and _has_erasure_since(history, source.snapshot_id)


def _has_erasure_since(source: History, snapshot_id: int) -> bool:
    main = source.main
    since = source.between(snapshot_id, main.snapshot_id) if main else None
    return any(snapshot.is_erasure for snapshot in (source.line if since is None else since))
