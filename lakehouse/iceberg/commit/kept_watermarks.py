"""Carry watermarks and code versions forward before their snapshots expire.

A watermark comes from the newest commit that read an input, among main's ancestors. Without it,
the input would be read again in full. An empty commit on main repeats the watermarks;
compaction cannot, since it accepts no properties.
"""

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.metadata.code_versions import computed_parts, is_complete_on_main
from lakehouse.iceberg.metadata.commit_record import CommitProperties, Kind
from lakehouse.iceberg.metadata.snapshots import History, history_of


def carry_watermarks(engine: Engine, table: str) -> bool:
    """Commit the watermarks of a table to main, unless main has them; runs in the table's lock.

    :returns: whether a commit was needed.
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
    """Return the properties that main lacks; None if it is complete."""
    if history.main is None:
        return None
    watermarks = _watermarks(history)
    own = history.main.commit.inputs if history.main.commit else {}
    has_watermarks = all(own.get(source) == mark for source, mark in watermarks.items())
    if has_watermarks and is_complete_on_main(history):
        return None
    return carried_properties(history, "upkeep")


def carried_properties(history: History, kind: Kind) -> CommitProperties:
    """Return the properties of a commit on main that repeats what main was computed from.

    They include the record of an unchanged run, which applies only to the current main.
    """
    watermarks = _watermarks(history)
    # The declaration of the last write is kept: rows of another tool may not match the
    # declaration.
    last = history.last_write
    declaration = last.commit.declaration if last and last.commit else ""
    outside_partitions = {
        source: values
        for source in watermarks
        if (values := history.outside_partitions(source))
    }
    return CommitProperties(
        kind,
        new_write_id(),
        inputs=watermarks,
        declaration=declaration,
        outside_partitions=outside_partitions,
        computed_by=computed_parts(history),
    )


def _watermarks(history: History) -> dict[str, int]:
    sources = set(history.unchanged_run.inputs)
    for snapshot in history.line:
        if snapshot.commit:
            sources.update(snapshot.commit.inputs)
    watermarks = {source: history.watermark(source) for source in sources}
    return {source: mark for source, mark in watermarks.items() if mark is not None}
