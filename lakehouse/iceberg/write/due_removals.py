"""Removals from a quarantine that become due when a write is published, recorded before.

If the run is killed or fails after its publish, the next write of the table removes the rows.
The same applies to a blocked candidate that a user publishes later.
The record is a table property, which each write reads anyway. It contains the write id and the
folder with the keys of the rows, as Parquet:

    staging/kept-rows/<timestamp>-<id>/0/part-….parquet
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import blocked_branch, kept_until
from lakehouse.iceberg.commit.snapshot_properties import set_property, unset_property
from lakehouse.iceberg.metadata.commit_record import PREFIX
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.write.kept_rows import KeptRowsFolder, stage_rows
from lakehouse.iceberg.write.quarantine_writes import keys_to_remove, take_out
from lakehouse.iceberg.write.write_attempt import Attempt, Write
from lakehouse.tables.table import IcebergTable

_log = logging.getLogger(__name__)
_LEAVES = f"{PREFIX}leaves."
"""Prefix of the property name; the write id follows."""
_KEYS = "_row_key string, _source_file string"


@dataclass(frozen=True)
class DueRemoval:
    """Rows to remove from a table's quarantine once a write is published."""

    write_id: str
    run_id: str
    keys: KeptRowsFolder

    @property
    def property_name(self) -> str:
        """Name of the table property."""
        return f"{_LEAVES}{self.write_id}"

    def is_expired(self, table: IcebergTable) -> bool:
        """Whether its write is too old to be running, and its candidate to be published."""
        until = kept_until(blocked_branch(self.write_id), table.upkeep_policy.refused_for)
        return until is None or datetime.now(UTC) > until


def note_removal(attempt: Attempt) -> None:
    """Record the removals of a write, if there are any, before its publish."""
    engine, table = attempt.engine, attempt.table
    keys = keys_to_remove(attempt)
    if keys is None:
        return
    folder = KeptRowsFolder.new(engine.store, engine.lock_dir)
    due = DueRemoval(attempt.write_id, attempt.run.run_id, folder)
    record = {"table": table.name, "run": due.run_id, "keys": folder.name}
    # Before the keys are written: a folder without a record would never be removed.
    set_property(engine, table.name, due.property_name, json.dumps(record))
    stage_rows(keys, folder.uri(0), engine.store_options)


def finish_removals(
    engine: Engine, table: IcebergTable, history: History, write: Write
) -> None:
    """Remove the recorded rows from a table's quarantine; uses no Spark if there are none.

    The table's rows are published already: a failure is logged, and the next write retries.
    """
    for due in _recorded(engine, table, history):
        is_due = history.has_published(due.write_id)
        try:
            if is_due:
                _take_out(engine, table, due, write)
            if (is_due or due.is_expired(table)) and due.keys.try_to_remove():
                unset_property(engine, table.name, due.property_name)
        except Exception as error:
            _log.warning(
                "%s has rows that are also in its quarantine; the next write of %s removes"
                " them: %s",
                table.name,
                table.name,
                error,
            )


def _recorded(engine: Engine, table: IcebergTable, history: History) -> Iterator[DueRemoval]:
    for name, value in sorted(history.properties.items()):
        if not name.startswith(_LEAVES):
            continue
        record = json.loads(value)
        # A cloned table has the properties of its original, but not its rows.
        if record["table"] == table.name:
            keys = KeptRowsFolder(engine.store, engine.lock_dir, record["keys"])
            yield DueRemoval(name.removeprefix(_LEAVES), record["run"], keys)


def _take_out(engine: Engine, table: IcebergTable, due: DueRemoval, write: Write) -> None:
    if not engine.store.objects(due.keys.prefix):
        # A process was killed after the removal and before the record was deleted, or the table
        # was not written for a week.
        if due.keys.is_left:
            _log.warning(
                "%s may have rows that are also in its quarantine: their keys were deleted."
                " `lakehouse quarantine replay %s` evaluates them again.",
                table.name,
                table.name,
            )
        return
    reader = engine.spark.read.schema(_KEYS).options(**engine.store_options)
    take_out(engine, table, due.run_id, write, reader.parquet(due.keys.uri(0)))
