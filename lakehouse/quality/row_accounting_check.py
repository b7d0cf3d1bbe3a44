"""The check of a table that no delivered row was lost on the way to it."""

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.metadata.commit_properties import Stamp
from lakehouse.iceberg.metadata.history import History, Snapshot, read_history
from lakehouse.iceberg.metadata.value_ranges import bound
from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.blocked_tables import note_check_failed
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.quality.row_accounting import FATES, Accounted, Came, account
from lakehouse.tables.table import IcebergTable

NAME = "every_row_is_accounted_for"


def accounted_check(
    source: IcebergTable, target: IcebergTable, *, by: str
) -> dg.AssetChecksDefinition:
    """Make the check that each row of a source counts in the target, is quarantined, or was
    superseded.

    In a run that computed partitions it looks at the source's rows of these, or where the run
    added to what stood, at what came and at what stands no more; alone, at all that the target
    was computed from.

    :param by: the source's column that the target's partitions are values or spans of.
    :raises DeclarationError: when the target has no versions that could be followed.
    """
    target_by = target.overwritten_by
    if target_by is None or target.versions is None or target.quarantine is None:
        raise DeclarationError(
            f"accounted_check of {target.name}: it follows the versions of a table that"
            " overwrites partitions and quarantines; of another table the check is there"
            " without being declared, where it keeps _source_file, _source_sha256 and"
            " _source_row.",
            next_step="Leave the line out.",
        )

    @dg.asset_check(
        asset=asset_key(target.name),
        name=NAME,
        description=(
            f"Each row of {source.name} counts in {target.name}, is quarantined, or was"
            " superseded."
        ),
        blocking=True,
        required_resource_keys={"io_manager"},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        engine = context.resources.io_manager.engine
        history = read_history(engine, target.name) if engine.catalog.has(target.name) else None
        mine = written_by(history, context.run.run_id)
        stamp = mine.stamp if mine else None
        if history and mine and stamp and stamp.read:
            computed, partitions = stamp.inputs.get(source.name), partitions_of(stamp)
            where, there = partitions.predicate(by), partitions.predicate(target_by)
            read, came = stamp.read.get(source.name), _came(history, mine, source.name)
            found = account(
                engine,
                source,
                target,
                read,
                where,
                first=there,
                computed_id=computed,
                came=came,
            )
        else:
            computed = history.watermark(source.name) if history else None
            found = account(engine, source, target, computed, computed_id=computed)
        if found.rows["lost"]:
            note_check_failed(context.instance, context.run.run_id, target.name)
        return _result(found, stamp.partitions if stamp else ())

    return check


def written_by(history: History | None, run_id: str) -> Snapshot | None:
    """Return the commit of a run, where a table's main is that."""
    main = history.main if history else None
    return main if main and main.stamp and main.stamp.run_id == run_id else None


def _came(history: History, mine: Snapshot, source: str) -> Came | None:
    """Return what a commit added to what stood; None where it computed its partitions anew."""
    assert mine.stamp is not None
    if source not in mine.stamp.since:
        return None
    # An overwrite may take two commits.
    before = next(
        (
            found
            for found in history.line
            if found.stamp is None or found.stamp.write_id != mine.stamp.write_id
        ),
        None,
    )
    return Came(mine.stamp.since[source], before.snapshot_id if before else None)


def partitions_of(stamp: Stamp) -> Partitions:
    """Return the partitions of a stamp, whose bounds are text there."""
    return Partitions(
        stamp.partitions, tuple((bound(low), bound(high)) for low, high in stamp.spans)
    )


def _result(found: Accounted, partitions: tuple[str, ...]) -> dg.AssetCheckResult:
    lost = found.rows["lost"]
    figures = CheckMetadata(
        failed_rows=lost,
        total_rows=found.total,
        threshold=0.0,
        predicate=(
            "a delivered row is neither in the table, nor in its quarantine, nor superseded by"
            " a newer one"
        ),
        partitions=partitions,
        sample=tuple(found.sample),
    )
    return dg.AssetCheckResult(
        passed=lost == 0,
        severity=dg.AssetCheckSeverity.ERROR,
        description=", ".join(f"{found.rows[fate]} {fate}" for fate in FATES)
        + f" of {found.total} delivered rows.",
        metadata={
            **figures.to_metadata(),
            "source_snapshot_id": str(found.source_snapshot_id),
            **{f"{fate}_rows": found.rows[fate] for fate in FATES},
        },
    )
