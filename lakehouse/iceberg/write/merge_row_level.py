"""How one merge changes rows: as its table does, unless it changes so many of them that whole
files are cheaper.
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
    """Let the merge inside change rows as is cheapest; yields how and why, or nothing where the
    declaration says how.

    Iceberg knows it by the table's properties alone, so that another way than the table's is
    set for the time of the merge, in 0.04 s. After a failure it stays, until the next write
    brings the table to its declaration.

    :param changed_rows: rows that the merge updates or deletes.
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
