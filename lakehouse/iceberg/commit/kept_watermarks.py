"""What a table was computed from, and by which code, carried on where the snapshots that say so
may go.

A watermark is what the newest commit that read an input says, of those that main descends from.
Expiry drops them, and then all of an input would be read anew. An empty commit on top of main
that says the same stays as long as main does; compaction could not carry it, since it takes no
properties.
"""

import json

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.metadata.code_versions import computed_parts, is_told_by_main
from lakehouse.iceberg.metadata.commit_properties import CommitProperties, Kind
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import UNCHANGED_PROPERTY, History, history_of


def carry_watermarks(engine: Engine, table: str) -> bool:
    """Commit the watermarks of a table on top of main, unless main itself has them; runs in the
    table's lock.

    :returns: whether it was needed.
    """
    try:
        loaded = engine.catalog.load_for_files(table)
    except TableNotFound:
        return False
    properties = missing_properties(history_of(table, loaded))
    if properties is None:
        return False
    commit_without_rows(engine, table, properties.to_summary())
    return True


def missing_properties(history: History) -> CommitProperties | None:
    """Return the properties that main lacks to say what the table was computed from; None where
    it lacks none.
    """
    if history.main is None:
        return None
    watermarks = _watermarks(history)
    own = history.main.commit.inputs if history.main.commit else {}
    has_watermarks = all(own.get(source) == mark for source, mark in watermarks.items())
    if has_watermarks and is_told_by_main(history):
        return None
    return carried_properties(history, "upkeep")


def carried_properties(history: History, kind: Kind) -> CommitProperties:
    """Return the properties of a commit on top of main that says what main was computed from, as
    it was before.

    Also where a table's properties note how far its inputs were read without a row changing:
    that note holds for the snapshot that main has, and lapses with any commit.
    """
    watermarks = _watermarks(history)
    # Who wrote last is still to be seen: rows that somebody else wrote are not as declared.
    last = history.last_write
    declaration = last.commit.declaration if last and last.commit else ""
    left_out = {source: values for source in watermarks if (values := history.left_out(source))}
    return CommitProperties(
        kind,
        new_write_id(),
        inputs=watermarks,
        declaration=declaration,
        left_out=left_out,
        computed_by=computed_parts(history),
    )


def _watermarks(history: History) -> dict[str, int]:
    noted = json.loads(history.properties.get(UNCHANGED_PROPERTY, "{}")).get("inputs", {})
    sources = set(noted)
    for snapshot in history.line:
        if snapshot.commit:
            sources.update(snapshot.commit.inputs)
    watermarks = {source: history.watermark(source) for source in sources}
    return {source: mark for source, mark in watermarks.items() if mark is not None}
