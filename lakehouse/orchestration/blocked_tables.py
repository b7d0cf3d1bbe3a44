"""Blocked tables: they would be refused again until what they read, or how they are declared,
changes.

A refused run is tagged with what it was computed from; who asks for runs looks for that tag
first. The tables do not need it: without Dagster's history a table is tried once more, and
refused once more.
"""

import hashlib
from collections.abc import Mapping, Sequence

import dagster as dg

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.orchestration.dagster_internals import add_run_tags
from lakehouse.orchestration.partition_bounds import computed_bounds
from lakehouse.runtime.run_tags import HIDDEN_PREFIX
from lakehouse.tables.table import IcebergTable

BLOCKED = f"{HIDDEN_PREFIX}held."
"""Begin of the tag of a run that refused a table, with its name: what the table was computed
from, as a digest.
"""
CHECK_FAILED = "lakehouse/check-failed"
"""Tag of a run that a check stopped, which looks further than one table: the table that it is a
check of.
"""
STALE = f"{HIDDEN_PREFIX}owed"
"""Tag of a run that was asked for: what it was asked for, and on which state of the tables, as
a digest.
"""
_NEWEST_FAILED_RUNS = 100
"""How many runs are looked at for one that refused a table."""
_LONGEST_NAME = 63
"""Dagster accepts 63 characters after the `/`."""
_DIGITS = 32


def blocked_tag(table: str) -> str:
    """Return the key of the tag that a refusal of a table is noted under."""
    room = _LONGEST_NAME - len(BLOCKED.partition("/")[2])
    return BLOCKED + (
        table if len(table) <= room else f"{table[: room - 9]}-{_digest(table)[:8]}"
    )


def digest_of(
    table: IcebergTable, partitions: Sequence[str], read: Mapping[str, object]
) -> str:
    """Return what a table is computed from as a short text: equal only for the same
    declaration, partitions and input.

    :param partitions: the first and the last key of each stretch of partitions that the run
        computes of it.
    :param read: what is read, by name: the snapshots of tables, the versions of files.
    """
    states = sorted((name, str(state)) for name, state in read.items())
    return _digest(repr((table, tuple(partitions), states)))


def digest_of_run(parts: Sequence[object]) -> str:
    """Return what a run is asked for as a short text."""
    return _digest(repr(tuple(parts)))


def mains(engine: Engine, tables: Sequence[str]) -> dict[str, int | None]:
    """Return the snapshot that readers see of each table; None of one that is not there, or has
    none.
    """
    snapshot_ids: dict[str, int | None] = {}
    for name in tables:
        main = read_history(engine, name).main if engine.catalog.has(name) else None
        snapshot_ids[name] = main.snapshot_id if main else None
    return snapshot_ids


def note_refused(
    instance: dg.DagsterInstance,
    run_id: str,
    table: IcebergTable,
    partitions: Sequence[str],
    read: Mapping[str, object],
) -> None:
    """Note that a run refused a table, and what it was computed from."""
    add_run_tags(
        instance, run_id, {blocked_tag(table.name): digest_of(table, partitions, read)}
    )


def note_check_failed(instance: dg.DagsterInstance, run_id: str, table: str) -> None:
    """Note that a check stopped a run, which looks further than one table."""
    add_run_tags(instance, run_id, {CHECK_FAILED: table})


def refused_run(
    instance: dg.DagsterInstance,
    table: IcebergTable,
    partitions: Sequence[str],
    read: Mapping[str, object],
) -> str | None:
    """Return the run that refused a table on the same input and declaration; None where none
    did.
    """
    refused = _newest(instance, {blocked_tag(table.name): digest_of(table, partitions, read)})
    return refused.run_id if refused else None


def refused_tables(
    instance: dg.DagsterInstance,
    declared: Mapping[str, IcebergTable],
    read: Mapping[str, Mapping[str, object]],
) -> dict[str, str]:
    """Return, by table, the newest run that refused it on the same input and declaration: one
    that computed some of its partitions among the last failed runs alone.

    :param read: by table what is read now, by name.
    """
    failed = instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=_NEWEST_FAILED_RUNS
    )
    refused: dict[str, str] = {}
    for run in (record.dagster_run for record in failed):
        # A table without partitions may have been computed along with those of a range.
        bounds: tuple[Sequence[str], ...] = ((), computed_bounds(run.tags))
        for name, states in read.items():
            digest = run.tags.get(blocked_tag(name))
            if digest is None or name in refused:
                continue
            if any(digest == digest_of(declared[name], keys, states) for keys in bounds):
                refused[name] = run.run_id
    for name, states in read.items():
        # Other runs may have failed more often since.
        if name not in refused and (
            run_id := refused_run(instance, declared[name], (), states)
        ):
            refused[name] = run_id
    return refused


def asked_for(instance: dg.DagsterInstance, digest: str) -> dg.DagsterRun | None:
    """Return the newest run that was asked for the same on the same tables; None where none
    was.
    """
    return _newest(instance, {STALE: digest})


def was_stopped(tags: Mapping[str, str]) -> bool:
    """Whether a check stopped a run."""
    return CHECK_FAILED in tags


def was_refused(tags: Mapping[str, str]) -> bool:
    """Whether a run failed for what the data are, and not for the system."""
    return was_stopped(tags) or any(key.startswith(BLOCKED) for key in tags)


def _newest(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> dg.DagsterRun | None:
    records = instance.get_run_records(dg.RunsFilter(tags=tags), limit=1)
    return records[0].dagster_run if records else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
