"""The check that no delivered row was lost, for tables with versions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, Snapshot, read_history
from lakehouse.iceberg.metadata.value_ranges import bound
from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.blocked_tables import note_check_failed
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.quality.row_accounting import Accounted, Increment, account
from lakehouse.tables.table import IcebergTable

NAME = "every_row_is_accounted_for"
Evaluate = Callable[
    [Engine, History | None, Snapshot | None, SuppressionList], dg.AssetCheckResult
]
"""Parameters: the table's history if any, the run's snapshot if any, and erased people."""


def accounted_check(
    source: IcebergTable, target: IcebergTable, *, by: str
) -> dg.AssetChecksDefinition:
    """Make the check that each source row is current in the target, quarantined or superseded.

    The target overwrites partitions, and has versions and a quarantine. The check covers the
    source rows of the run's partitions; in an incremental run, new and removed rows; without a
    run, everything that the target was computed from.

    :param by: the source column that determines the target's partitions.
    """
    target_by = target.overwritten_by
    assert target_by is not None

    def evaluate(
        engine: Engine,
        history: History | None,
        snapshot: Snapshot | None,
        gone: SuppressionList,
    ) -> dg.AssetCheckResult:
        commit = snapshot.commit if snapshot else None
        if history is None or commit is None or not commit.read:
            computed_id = history.watermark(source.name) if history else None
            state_id = kept_state(engine, source.name, computed_id)
            accounted = account(
                engine, source, target, state_id, computed_id=computed_id, suppression=gone
            )
            return _accounted_result(accounted, commit.partitions if commit else ())
        partitions = partitions_of(commit)
        accounted = account(
            engine,
            source,
            target,
            commit.read.get(source.name),
            partitions.predicate(by),
            first=partitions.predicate(target_by),
            computed_id=commit.inputs.get(source.name),
            increment=_increment(history, commit, source.name),
            suppression=gone,
        )
        return _accounted_result(accounted, commit.partitions)

    return rows_check(
        target,
        f"Each row of {source.name} counts in {target.name}, is quarantined, or was"
        " superseded.",
        evaluate,
    )


def kept_state(engine: Engine, source: str, snapshot_id: int | None) -> int | None:
    """Return the source snapshot to check: the one that the target was computed from. If it
    expired, for example after an erasure, return the current one, which the next run reads in
    full.
    """
    if snapshot_id is None:
        return None
    history = read_history(engine, source)
    if snapshot_id in history.snapshots or history.main is None:
        return snapshot_id
    return history.main.snapshot_id


def rows_check(
    target: IcebergTable, description: str, evaluate: Evaluate
) -> dg.AssetChecksDefinition:
    """Make the check that accounts for the rows of a table; a failure blocks the table."""

    @dg.asset_check(
        asset=asset_key(target.name),
        name=NAME,
        description=description,
        blocking=True,
        required_resource_keys={"io_manager"},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        io = context.resources.io_manager
        engine = io.engine
        run_id = context.run.run_id
        history = read_history(engine, target.name) if engine.catalog.has(target.name) else None
        result = evaluate(engine, history, _snapshot_of_run(history, run_id), io.gone)
        if not result.passed:
            note_check_failed(context.instance, run_id, target.name)
        return result

    return check


def rows_result(
    rows: Mapping[str, int],
    failed: str,
    predicate: str,
    description: str,
    *,
    partitions: tuple[str, ...] = (),
    sample: Sequence[Any] = (),
    **metadata: Any,
) -> dg.AssetCheckResult:
    """Return the check result for row counts by outcome.

    :param failed: the outcome that must have no rows.
    """
    check_metadata = CheckMetadata(
        failed_rows=rows[failed],
        total_rows=sum(rows.values()),
        threshold=0.0,
        predicate=predicate,
        partitions=partitions,
        sample=tuple(sample),
    )
    counts = {f"{outcome}_rows": count for outcome, count in rows.items()}
    return dg.AssetCheckResult(
        passed=not rows[failed],
        severity=dg.AssetCheckSeverity.ERROR,
        description=description,
        metadata={**check_metadata.to_metadata(), **metadata, **counts},
    )


def _snapshot_of_run(history: History | None, run_id: str) -> Snapshot | None:
    """Return the run's snapshot if it is the current main."""
    main = history.main if history else None
    return main if main and main.commit and main.commit.run_id == run_id else None


def _increment(history: History, commit: CommitProperties, source: str) -> Increment | None:
    """Return the increment of a commit, or None if it computed its partitions in full."""
    if source not in commit.since:
        return None
    # An overwrite may take two commits.
    for snapshot in history.line:
        if snapshot.commit is None or snapshot.commit.write_id != commit.write_id:
            return Increment(commit.since[source], snapshot.snapshot_id)
    return Increment(commit.since[source], None)


def partitions_of(commit: CommitProperties) -> Partitions:
    """Return the partitions of a commit, with parsed bounds."""
    return Partitions(
        commit.partitions,
        tuple((bound(low), bound(high)) for low, high in commit.merged_ranges),
    )


def _accounted_result(accounted: Accounted, partitions: tuple[str, ...]) -> dg.AssetCheckResult:
    counts = ", ".join(f"{rows} {outcome}" for outcome, rows in accounted.rows.items())
    return rows_result(
        accounted.rows,
        "lost",
        "a delivered row is neither in the table, nor in its quarantine, nor superseded by a"
        " newer one",
        f"{counts} of {sum(accounted.rows.values())} delivered rows.",
        partitions=partitions,
        sample=accounted.sample,
        source_snapshot_id=str(accounted.source_snapshot_id),
    )
