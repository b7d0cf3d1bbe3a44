"""Removals from a quarantine that become due when a write is published, recorded before.

If the run is killed or fails after its publish, the next write of the table removes the rows.
The record is a table property, which each write reads anyway. It contains the write id and the
folder with the keys of the rows, as Parquet:

    staging/kept-rows/<timestamp>-<id>/0/part-….parquet

It is valid if main contains the write, or for an unchanged table, if main is the compared
snapshot.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse.iceberg.commit.branch import AUDIT_KEPT_FOR, audit_branch, begun_at
from lakehouse.iceberg.commit.table_property import set_property, unset_property
from lakehouse.iceberg.metadata.commit_properties import PREFIX
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.frame_joins import union_all
from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.write.kept_rows import stage_rows
from lakehouse.iceberg.write.kept_rows_folder import KeptRowsFolder
from lakehouse.iceberg.write.quarantine import take_out
from lakehouse.iceberg.write.write_attempt import Attempt, Write
from lakehouse.tables.table import IcebergTable

_log = logging.getLogger(__name__)
_LEAVES = f"{PREFIX}leaves."
"""Prefix of the property name; the write id follows."""
_KEYS = "_row_key string, _source_file string"


@dataclass(frozen=True)
class DueRemoval:
    """Rows to remove from a table's quarantine because of one write."""

    table: str
    write_id: str
    run_id: str
    folder: str
    """Name of the folder with their keys."""
    unchanged: int | None = None
    """For a write that changes no row: the snapshot of main that it compared with."""
    publishes: bool = True
    """Whether the write publishes; False for a write that changes no row."""

    @property
    def property_name(self) -> str:
        """Name of the table property."""
        return f"{_LEAVES}{self.write_id}"

    @property
    def is_expired(self) -> bool:
        """Whether its write, of any host, is too old to be running."""
        begun = begun_at(audit_branch(self.write_id))
        return begun is None or datetime.now(UTC) - begun > AUDIT_KEPT_FOR

    def is_due(self, history: History) -> bool:
        """Whether the table is in the state for which the rows are removed."""
        if self.publishes:
            return history.has_published(self.write_id)
        ids = {snapshot.snapshot_id for snapshot in history.line}
        return self.unchanged is None or self.unchanged in ids

    def keys_in(self, engine: Engine) -> KeptRowsFolder:
        """Return the folder with the keys."""
        return KeptRowsFolder(engine.store, engine.lock_dir, self.folder)

    def to_property(self) -> str:
        """Return the property value."""
        return json.dumps(
            {
                "table": self.table,
                "run": self.run_id,
                "keys": self.folder,
                "publishes": self.publishes,
                # Snapshot ids are text, since they exceed 2^53.
                "unchanged": None if self.unchanged is None else str(self.unchanged),
            }
        )


def note_removal(attempt: Attempt, *, publishes: bool) -> None:
    """Record the removals of a write that is about to be published, or that changes no row;
    nothing is recorded or cached if there are none.
    """
    engine, table, leaving = attempt.engine, attempt.table, attempt.removals
    if table.quarantine is None or not leaving:
        return
    keys = union_all(frame.select("_row_key", "_source_file") for frame in leaving)
    keys = keys.dropDuplicates(["_row_key"])
    leaving.clear()
    if keys.isEmpty():
        return
    main = None if publishes else attempt.history().main
    due = DueRemoval(
        table.name,
        attempt.write_id,
        attempt.run.run_id,
        KeptRowsFolder.new(engine.store, engine.lock_dir).name,
        main.snapshot_id if main else None,
        publishes,
    )
    # Before the keys are written: a folder without a record would never be removed.
    set_property(engine, table.name, due.property_name, due.to_property())
    staged = stage_rows(keys, due.keys_in(engine).uri(0), engine.store_options)
    leaving.append(staged)


def finish_removals(
    engine: Engine, table: IcebergTable, history: History, write: Write
) -> None:
    """Remove the recorded rows from a table's quarantine. A failed removal is logged and
    retried by the next write. Uses neither Spark nor the catalog if nothing is recorded.

    The rows of the table are published already, so errors do not fail the write.
    """
    for due in _recorded(table, history):
        try:
            if due.is_due(history) and table.quarantine is not None:
                _take_out(engine, table, due, write)
                _forget(engine, due)
            elif due.is_expired:
                _forget(engine, due)
        except Exception as error:
            _log.warning(
                "%s has rows that are also in its quarantine; the next write of %s removes"
                " them: %s",
                table.name,
                table.name,
                error,
            )


def _recorded(table: IcebergTable, history: History) -> Iterator[DueRemoval]:
    for name, value in sorted(history.properties.items()):
        if not name.startswith(_LEAVES):
            continue
        record = json.loads(value)
        # A cloned table has the properties of its original, but not its rows.
        if record["table"] == table.name:
            unchanged = record["unchanged"]
            yield DueRemoval(
                table.name,
                name.removeprefix(_LEAVES),
                record["run"],
                record["keys"],
                None if unchanged is None else int(unchanged),
                record["publishes"],
            )


def _take_out(engine: Engine, table: IcebergTable, due: DueRemoval, write: Write) -> None:
    folder = due.keys_in(engine)
    if not engine.store.objects(folder.prefix):
        # A process was killed after the removal and before the record was deleted, or the table
        # was not written for a week.
        if folder.is_left:
            _log.warning(
                "%s may have rows that are also in its quarantine: their keys were deleted."
                " `lakehouse quarantine replay %s` evaluates them again.",
                table.name,
                table.name,
            )
        return
    reader = engine.spark.read.schema(_KEYS).options(**engine.store_options)
    take_out(engine, table, due.run_id, write, reader.parquet(folder.uri(0)))


def _forget(engine: Engine, due: DueRemoval) -> None:
    if due.keys_in(engine).try_to_remove():
        unset_property(engine, due.table, due.property_name)
