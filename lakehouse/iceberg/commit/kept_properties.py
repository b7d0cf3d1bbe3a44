"""What a table was computed from, carried on where the snapshot that says so may go.

A watermark is the newest stamp among the snapshots that main descends from. Expiry drops these,
and then all of an input would be read anew. An empty commit on top of main, stamped with the
same, stays as long as main does; compaction could not carry it, since it takes no properties.
"""

import json
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.metadata.commit_properties import Stamp
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import UNCHANGED_PROPERTY, History, read_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriterV2


def carry_stamp(engine: Engine, table: str) -> bool:
    """Commit the watermarks of a table on top of main, unless main itself has them; runs in the
    table's lock.

    :returns: whether it was needed.
    """
    if not engine.catalog.has(table):
        return False
    stamp = carried_stamp(read_history(engine, table))
    if stamp is None:
        return False
    name = engine.catalog.sql_name(table)
    writer: DataFrameWriterV2 = engine.spark.table(name).where("false").writeTo(name)
    for key, value in stamp.to_summary().items():
        writer = writer.option(f"snapshot-property.{key}", value)
    writer.append()
    return True


def carried_stamp(history: History) -> Stamp | None:
    """Return the stamp that main lacks to say what the table was computed from; None where it
    lacks none.
    """
    if history.main is None:
        return None
    marks = _watermarks(history)
    own = history.main.stamp.inputs if history.main.stamp else {}
    if all(own.get(source) == mark for source, mark in marks.items()):
        return None
    # Who wrote last is still to be seen: rows that somebody else wrote are not as declared.
    last = history.last_write
    declaration = last.stamp.declaration if last and last.stamp else ""
    left_out = {source: values for source in marks if (values := history.left_out(source))}
    return Stamp(
        "upkeep", new_write_id(), inputs=marks, declaration=declaration, left_out=left_out
    )


def _watermarks(history: History) -> dict[str, int]:
    noted = json.loads(history.properties.get(UNCHANGED_PROPERTY, "{}")).get("inputs", {})
    stamped = (
        source
        for snapshot in history.line
        if snapshot.stamp
        for source in snapshot.stamp.inputs
    )
    marks = {source: history.watermark(source) for source in {*noted, *stamped}}
    return {source: mark for source, mark in marks.items() if mark is not None}
