"""What leaves a quarantine once a write is published, noted before that: where the run is killed
in between, or fails, the next write of the table takes it out.

The note is a property of the table, which each write reads anyway. It says of which write it is
and where the keys of the rows are, as Parquet beside what writes keep on a cluster:

    staging/kept-rows/<moment>-<id>/0/part-….parquet

It holds where main has the write; of one that changed no row, where main has the snapshot that it
compared with.
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
from lakehouse.iceberg.metadata.frame_joins import together
from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.write.kept_rows import stage_rows
from lakehouse.iceberg.write.kept_rows_folder import KeptRowsFolder
from lakehouse.iceberg.write.quarantine import Write, take_out
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.table import IcebergTable

_log = logging.getLogger(__name__)
_LEAVES = f"{PREFIX}leaves."
"""How the name of the property begins; it ends with the id of the write."""
_KEYS = "_row_key string, _source_file string"


@dataclass(frozen=True)
class DueRemoval:
    """Rows that leave the quarantine of a table for one write."""

    table: str
    write_id: str
    run_id: str
    folder: str
    """The name of the folder that has their keys."""
    unchanged: int | None = None
    """Of a write that changes no row, the snapshot of main that it compared with."""
    publishes: bool = True
    """Whether the write publishes; one that changes no row has nothing to."""

    @property
    def property_name(self) -> str:
        """The name of the table's property that says so."""
        return f"{_LEAVES}{self.write_id}"

    @property
    def is_of_dead(self) -> bool:
        """Whether its write, of whatever host, counts as dead by its age."""
        begun = begun_at(audit_branch(self.write_id))
        return begun is None or datetime.now(UTC) - begun > AUDIT_KEPT_FOR

    def is_due(self, history: History) -> bool:
        """Whether the table is as the rows leave for."""
        if self.publishes:
            return history.has_published(self.write_id)
        ids = {snapshot.snapshot_id for snapshot in history.line}
        return self.unchanged is None or self.unchanged in ids

    def keys_in(self, engine: Engine) -> KeptRowsFolder:
        """Return the folder that has the keys."""
        return KeptRowsFolder(engine.store, engine.lock_dir, self.folder)

    def to_property(self) -> str:
        """Return it as the value of a property."""
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
    """Note what leaves the quarantine for a write that is about to be published, or that changes
    no row; nothing is noted, and no frame kept, where no row does.
    """
    engine, table, leaving = attempt.engine, attempt.table, attempt.leaving
    if table.quarantine is None or not leaving:
        return
    keys = together(frame.select("_row_key", "_source_file") for frame in leaving)
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
    # Before the keys: a folder that no note names would stay.
    set_property(engine, table.name, due.property_name, due.to_property())
    staged = stage_rows(keys, due.keys_in(engine).uri(0), engine.store_options)
    leaving.append(staged)


def finish_removals(
    engine: Engine, table: IcebergTable, history: History, write: Write
) -> None:
    """Take out of a table's quarantine what is noted; what cannot be taken out now is with the
    next write, and the log says so. Asks neither Spark nor the catalog where nothing is noted.

    The rows of the table are published, so that no error fails its write.
    """
    for due in _noted(table, history):
        try:
            if due.is_due(history) and table.quarantine is not None:
                _take_out(engine, table, due, write)
                _forget(engine, due)
            elif due.is_of_dead:
                _forget(engine, due)
        except Exception as error:
            _log.warning(
                "%s has rows that stand in its quarantine too; the next write of %s takes them"
                " out: %s",
                table.name,
                table.name,
                error,
            )


def _noted(table: IcebergTable, history: History) -> Iterator[DueRemoval]:
    for name, value in sorted(history.properties.items()):
        if not name.startswith(_LEAVES):
            continue
        said = json.loads(value)
        # A clone has the properties of its table, whose rows are none of its own.
        if said["table"] == table.name:
            unchanged = said["unchanged"]
            yield DueRemoval(
                table.name,
                name.removeprefix(_LEAVES),
                said["run"],
                said["keys"],
                None if unchanged is None else int(unchanged),
                said["publishes"],
            )


def _take_out(engine: Engine, table: IcebergTable, due: DueRemoval, write: Write) -> None:
    folder = due.keys_in(engine)
    if not engine.store.objects(folder.prefix):
        # A process was killed that had taken them out, but for its note; or nobody wrote the
        # table for a week.
        if folder.is_left:
            _log.warning(
                "%s may have rows that stand in its quarantine too: what told them is gone."
                " `lakehouse quarantine replay %s` decides anew.",
                table.name,
                table.name,
            )
        return
    reader = engine.spark.read.schema(_KEYS).options(**engine.store_options)
    take_out(engine, table, due.run_id, write, reader.parquet(folder.uri(0)))


def _forget(engine: Engine, due: DueRemoval) -> None:
    if due.keys_in(engine).try_to_remove():
        unset_property(engine, due.table, due.property_name)
