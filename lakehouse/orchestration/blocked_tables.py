"""Tables whose last write was blocked, and checks that failed last."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import add_run_tags, check_summaries
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.orchestration.partitions.partition_bounds import computed_bounds
from lakehouse.spark.processes import HIDDEN_PREFIX
from lakehouse.tables.table import IcebergTable


def need_full_check(
    instance: dg.DagsterInstance, table: IcebergTable, passed: Iterable[str]
) -> set[str]:
    """Return the checks that pass now but whose last evaluation failed or was of a blocked write.

    Excludes quarantining rules, since their rows are not in the table, and checks of a single
    write, such as the quarantine share.

    :param passed: names of the checks that pass for the new rows.
    """
    quarantining = {rule.name for rule in table.quarantining_rules}
    of_rows = {rule.name for rule in table.rules}
    of_writes = {rule.name for rule in checked_rules(table)} - of_rows
    names = set(passed) - quarantining - of_writes
    keys = [dg.AssetCheckKey(asset_key(table.name), name) for name in names]
    if not keys:
        return set()
    summaries = check_summaries(instance, keys)
    return {key.name for key in keys if key in summaries and _is_open(summaries[key])}


def _is_open(summary: Any) -> bool:
    """Whether the last evaluation failed, or did not cover published rows: of a blocked write."""
    last = summary.last_completed_check_execution_record
    evaluation = last.evaluation if last else None
    if evaluation is None:
        return False
    is_of_main = CheckMetadata.from_metadata(evaluation.metadata).evaluated == "main"
    return not (evaluation.passed and is_of_main)


BLOCKED = f"{HIDDEN_PREFIX}held."
"""Prefix of the tag of a run that blocked a table: the digest of the table's inputs."""
CHECK_FAILED = "lakehouse/check-failed"
"""Tag of a run that a check of several tables stopped: the table of the check."""
STALE = f"{HIDDEN_PREFIX}owed"
"""Tag of a requested run: digest of the request and of the state of the tables."""
_NEWEST_FAILED_RUNS = 100
"""Maximum number of failed runs to search."""
_LONGEST_NAME = 63
"""Dagster accepts 63 characters after the `/`."""
_DIGITS = 32


def blocked_tag(table: str) -> str:
    """Return the key of the tag for a blocked table."""
    room = _LONGEST_NAME - len(BLOCKED.partition("/")[2])
    return BLOCKED + (
        table if len(table) <= room else f"{table[: room - 9]}-{_digest(table)[:8]}"
    )


def digest_of(
    table: IcebergTable, partitions: Sequence[str], read: Mapping[str, object]
) -> str:
    """Return a digest of the declaration, partitions and inputs of a table.

    :param partitions: first and last key of each contiguous range of partitions.
    :param read: by name: snapshot ids of tables, versions of files.
    """
    states = sorted((name, str(state)) for name, state in read.items())
    return _digest(repr((table, tuple(partitions), states)))


def digest_of_run(parts: Sequence[object]) -> str:
    """Return a digest of a run request."""
    return _digest(repr(tuple(parts)))


def mains(engine: Engine, tables: Sequence[str]) -> dict[str, int | None]:
    """Return the current snapshot id of each table; None without a table or snapshot."""
    snapshot_ids: dict[str, int | None] = {}
    for name in tables:
        main = read_history(engine, name).main if engine.catalog.has(name) else None
        snapshot_ids[name] = main.snapshot_id if main else None
    return snapshot_ids


def note_blocked(
    instance: dg.DagsterInstance,
    run_id: str,
    table: IcebergTable,
    partitions: Sequence[str],
    read: Mapping[str, object],
) -> None:
    """Tag a run with the digest of the inputs of the table that it blocked."""
    add_run_tags(
        instance, run_id, {blocked_tag(table.name): digest_of(table, partitions, read)}
    )


def note_check_failed(instance: dg.DagsterInstance, run_id: str, table: str) -> None:
    """Tag a run that a check of several tables stopped."""
    add_run_tags(instance, run_id, {CHECK_FAILED: table})


def find_blocking_run(
    instance: dg.DagsterInstance,
    table: IcebergTable,
    partitions: Sequence[str],
    read: Mapping[str, object],
) -> str | None:
    """Return the run that blocked a table with the same inputs and declaration; else None."""
    blocking = _newest(instance, {blocked_tag(table.name): digest_of(table, partitions, read)})
    return blocking.run_id if blocking else None


def find_blocked_tables(
    instance: dg.DagsterInstance,
    declared: Mapping[str, IcebergTable],
    read: Mapping[str, Mapping[str, object]],
) -> dict[str, str]:
    """Return, by table, the newest run that blocked it with the same inputs and declaration.

    Runs of single partitions are found only if they are in the newest failed runs.

    :param read: by table: the current state of its inputs.
    """
    failed = instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=_NEWEST_FAILED_RUNS
    )
    blocking: dict[str, str] = {}
    for run in (record.dagster_run for record in failed):
        # A table without partitions can be part of a run of partitions.
        bounds: tuple[Sequence[str], ...] = ((), computed_bounds(run.tags))
        for name, states in read.items():
            digest = run.tags.get(blocked_tag(name))
            if digest is None or name in blocking:
                continue
            if any(digest == digest_of(declared[name], keys, states) for keys in bounds):
                blocking[name] = run.run_id
    for name, states in read.items():
        # More recent failures can exceed the limit.
        if name not in blocking and (
            run_id := find_blocking_run(instance, declared[name], (), states)
        ):
            blocking[name] = run_id
    return blocking


def find_requested_run(instance: dg.DagsterInstance, digest: str) -> dg.DagsterRun | None:
    """Return the newest run with the same request on the same tables; None if there is none."""
    return _newest(instance, {STALE: digest})


def was_stopped(tags: Mapping[str, str]) -> bool:
    """Whether a check stopped a run."""
    return CHECK_FAILED in tags


def was_blocked(tags: Mapping[str, str]) -> bool:
    """Whether a run failed because of its data, not because of the system."""
    return was_stopped(tags) or any(key.startswith(BLOCKED) for key in tags)


def _newest(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> dg.DagsterRun | None:
    records = instance.get_run_records(dg.RunsFilter(tags=tags), limit=1)
    return records[0].dagster_run if records else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
