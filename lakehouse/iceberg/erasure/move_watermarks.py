"""Readers are moved past an erasure, where nothing else came since they last read.

To them an erasure is no news: nobody computes them anew. Of one that reads on from where it was,
the snapshot that was read last, which has the erased rows, would be needed for ever; one that
reads in full would count as stale once that snapshot is gone, and be computed for nothing.
"""

from collections.abc import Iterable
from dataclasses import replace

from lakehouse.iceberg.commit.kept_watermarks import carried_properties, carry_watermarks
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, read_history
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.iceberg.upkeep.lost_race import RaceLost, free_lock


def move_watermarks(engine: Engine, table: str, readers: Iterable[str]) -> tuple[str, ...]:
    """Commit, on top of main of each reader that has read all rows of a table, that it has read
    the table as it is now; return those that were moved.

    Ask it after the last commit to the table. A table that is being written is left as it is,
    as is a reader with rows still to read: the next call moves them.

    :param readers: names of the tables that are computed from this one.
    """
    source = read_history(engine, table)
    there = [reader for reader in readers if engine.catalog.has(reader)]
    behind = [one for one in there if _is_behind(source, read_history(engine, one))]
    if not behind:
        return ()
    try:
        with free_lock(engine, table):
            # Expiry would commit it after this, and leave the readers behind once more.
            carry_watermarks(engine, table)
    except RaceLost:
        return ()
    return tuple(reader for reader in behind if _move(engine, table, reader))


def _is_behind(source: History, target: History) -> bool:
    """Whether a reader last read a snapshot that is no more main's, and has no rows to read."""
    since = target.watermark(source.table)
    if source.main is None or since is None or since not in source.snapshots:
        return False
    return since != source.main.snapshot_id and not has_news(source, target)


def _move(engine: Engine, table: str, reader: str) -> bool:
    try:
        with free_lock(engine, reader):
            # Either may have been written since.
            source, target = read_history(engine, table), read_history(engine, reader)
            if not _is_behind(source, target):
                return False
            carried = carried_properties(target, "upkeep")
            moved = replace(carried, inputs={**carried.inputs, table: source.refs[MAIN]})
            commit_without_rows(engine, reader, moved.to_summary())
    except RaceLost:
        return False
    return True
