"""What Iceberg keeps of rows that are deleted goes, step by step, in the one order that works.

Files are written again first, since old snapshots can only go once nothing needs them; then the
manifests that tell of removed files, then the snapshots, and what only they named. Each step
looks at the table as it is, so that a call after one that was killed goes on from there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lakehouse.iceberg.erasure.clean_manifests import clean_manifests
from lakehouse.iceberg.erasure.move_watermarks import move_watermarks
from lakehouse.iceberg.erasure.old_metadata import remove_old_metadata, remove_statistics
from lakehouse.iceberg.erasure.remove_unnamed import (
    refuse_where_written,
    remove_unnamed,
    unnamed_files,
)
from lakehouse.iceberg.erasure.rewrite_erased_files import rewrite_erased_files
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.location_files import LocationFile
from lakehouse.iceberg.metadata.measured_health import SnapshotPin
from lakehouse.iceberg.metadata.named_files import all_named_files
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_lost_metadata import remove_lost_metadata
from lakehouse.iceberg.upkeep.remove_orphans import YOUNGEST, remove_orphans
from lakehouse.iceberg.upkeep.snapshot_pins import find_pins
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class CostOfNow:
    """What it costs a table when files go at once."""

    table: str
    snapshots: int
    """How many past states can be read no more."""
    pinned_readers: tuple[str, ...]
    """The tables that read in full the next time, since they have rows to read after a state
    that is gone.
    """


def cost_of_now(engine: Engine, table: str, readers: Iterable[str]) -> CostOfNow:
    """Say what `now=True` costs a table before it is done; no JVM.

    :param readers: names of the tables that are declared to read this one.
    """
    history = read_history(engine, table)
    past = history.snapshots.keys() - set(history.refs.values())
    there = [reader for reader in readers if engine.catalog.has(reader)]
    pinned = [one for one in there if has_news(history, read_history(engine, one))]
    return CostOfNow(table, len(past), tuple(pinned))


def remove_from_files(
    engine: Engine,
    table: IcebergTable,
    request: str,
    *,
    now: bool,
    readers: Iterable[str] = (),
    dependents: Iterable[str] = (),
) -> tuple[StepResult, ...]:
    """Remove what the files of a table keep of rows that `delete_rows` took: data files under
    delete files, what manifests tell of removed files, past snapshots and what only they name,
    statistics, old metadata.json files, and files without a name.

    A step that gives way to a writer is `skipped` with `lost_race`; what is kept for a while is
    `partial`, its reason says for whom or until when. Done again it does the rest.

    :param now: whether pins of readers are passed over, and files without a name go whatever
        their age, with the table's lock and where no write is under way; see `cost_of_now`.
    :param readers: names of the tables that read on in this one from where they were, and need
        what came since.
    :param dependents: names of all tables that are computed from this one, so that those that
        have read all of it are not stale afterwards.
    :raises TableBusy: with `now`, when the table is being written.
    """
    if now:
        return remove_now(engine, [table], request, {table.name: list(dependents)})
    name = table.name
    if not engine.catalog.has(name):
        return ()
    results = _remove_named(engine, name, request, dependents, pinned_by=list(readers))
    moment = datetime.now(UTC)
    results.append(remove_lost_metadata(engine, name, older_than=moment))
    results.append(_remove_orphans(engine, name, moment))
    return tuple(results)


def remove_now(
    engine: Engine,
    tables: Iterable[IcebergTable],
    request: str,
    dependents: Mapping[str, Collection[str]],
) -> tuple[StepResult, ...]:
    """Do what `remove_from_files` does with `now`, for several tables; in the end the locks of
    all of them are held at once.

    :param dependents: by table, all that are computed from it.
    :raises TableBusy: when one of them, or one whose files lie among theirs, is being written.
    """
    names = [table.name for table in tables if engine.catalog.has(table.name)]
    for name in names:
        refuse_where_written(engine, name)
    results: list[StepResult] = []
    for name in names:
        of_table = dependents.get(name, ())
        results += _remove_named(engine, name, request, of_table, pinned_by=())
    return (*results, *remove_unnamed(engine, names))


def _remove_named(
    engine: Engine,
    table: str,
    request: str,
    dependents: Iterable[str],
    *,
    pinned_by: Collection[str],
) -> list[StepResult]:
    results = [
        rewrite_erased_files(engine, table, request),
        clean_manifests(engine, table, request),
    ]
    move_watermarks(engine, table, dependents)
    return [
        *results,
        _expire(engine, table, find_pins(engine, table, pinned_by)),
        remove_statistics(engine, table),
        remove_old_metadata(engine, table),
    ]


def _expire(engine: Engine, table: str, pins: Sequence[SnapshotPin]) -> StepResult:
    """Expire all snapshots that no branch or tag points at; say where some are kept."""
    result = expire_snapshots(
        engine, table, older_than=datetime.now(UTC), keep=1, pins=[*_without_refs(pins)]
    )
    history = read_history(engine, table)
    kept = history.snapshots.keys() - set(history.refs.values())
    if not kept or result.outcome not in ("done", "skipped") or result.lost_race:
        return result
    reason = f"{len(kept)} past snapshots are kept: {result.reason or 'by their branches'}"
    return replace(result, outcome="partial", reason=reason)


def _without_refs(pins: Iterable[SnapshotPin]) -> Iterable[SnapshotPin]:
    """Leave out the tags and branches, which keep what they point at by themselves."""
    return (pin for pin in pins if pin.needs_later)


def _remove_orphans(engine: Engine, table: str, moment: datetime) -> StepResult:
    """Remove old files without a name, and say when the younger ones are due."""
    unnamed = _unnamed(engine, table)
    if not any(file.modified_at + YOUNGEST <= moment for file in unnamed):
        # The procedure would start Spark to find nothing.
        reason = "no file that is a day old is without a name"
        result = StepResult(table, "remove_orphans", "skipped", reason)
    else:
        result = remove_orphans(engine, table, older_than=moment)
    due = orphans_due(engine, table)
    if due is None or result.outcome not in ("done", "skipped") or result.lost_race:
        return result
    if due <= moment and result.reason:
        # It would be due for ever.
        reason = f"old files without a name stay: {result.reason}"
        return replace(result, outcome="partial", reason=reason)
    reason = f"files without a name are removed from {due:%Y-%m-%d %H:%M} UTC on"
    figures = {**result.figures, "due_at": due.timestamp()}
    return replace(result, outcome="partial", reason=reason, figures=figures)


def orphans_due(engine: Engine, table: str) -> datetime | None:
    """Return when the youngest file without a name in a table's location is a day old, so that
    upkeep may remove it; None where there is none.
    """
    moments = [file.modified_at for file in _unnamed(engine, table)]
    return max(moments) + YOUNGEST if moments else None


def _unnamed(engine: Engine, table: str) -> list[LocationFile]:
    loaded = engine.catalog.load(table)
    return list(unnamed_files(loaded, frozenset(all_named_files(loaded))).values())
