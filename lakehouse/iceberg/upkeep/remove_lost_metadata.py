"""Removal of orphan metadata.json files of failed commits, which are in no metadata log.

A commit to the embedded catalog writes its file before the compare-and-swap, and leaves it
after a conflict: 17 of 34 files after 16 contended commits. Spark's orphan removal also removes
them, at the age of orphans; these small files are removed after a day.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.location_files import (
    LocationFile,
    list_metadata_folder,
    path_key,
)
from lakehouse.iceberg.metadata.own_files import own_orphan_metadata
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped, verified
from lakehouse.iceberg.upkeep.remove_orphans import YOUNGEST, other_inside, shared_location
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.iceberg.upkeep.stored_files import bytes_of

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STEP: StepName = "remove_lost_metadata"


def remove_lost_metadata(engine: Engine, table: str, *, older_than: datetime) -> StepResult:
    """Remove metadata.json files that are in no log, and are older than a timestamp (at least a
    day) and than the current file; no JVM.
    """
    cutoff = min(older_than, datetime.now(UTC) - YOUNGEST)
    return run_step(table, _STEP, lambda: _remove(engine, table, cutoff))


def _remove(engine: Engine, table: str, older_than: datetime) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        shared_with = shared_location(engine, table)
        if shared_with:
            return skipped(table, _STEP, shared_with)
        orphans = find_orphan_metadata(loaded, older_than)
        if not orphans:
            return skipped(table, _STEP, "there are no old metadata files outside of the log")
        paths = [file.path for file in orphans.values()]
        if other := other_inside(engine, loaded, paths):
            return StepResult(table, _STEP, "failed", other)
        for path in paths:
            loaded.io.delete(path)
        listed = list_metadata_folder(loaded)
        remaining = [file.path for key, file in orphans.items() if key in listed]
        removed = [file for key, file in orphans.items() if key not in listed]
        step_metrics = {"removed_files": len(removed), "removed_bytes": bytes_of(removed)}
        return verified(table, _STEP, step_metrics, remaining=remaining)


def find_orphan_metadata(table: "Table", older_than: datetime) -> dict[str, LocationFile]:
    """Return the metadata.json files that are in no log, and are older than a timestamp and
    than the current file, by `path_key`.
    """
    listed = list_metadata_folder(table)
    current = listed.get(path_key(table.metadata_location))
    if current is None:
        return {}
    older_than = min(older_than, current.modified_at)
    orphans = own_orphan_metadata(table)
    return {key: file for key, file in orphans.items() if file.modified_at < older_than}
