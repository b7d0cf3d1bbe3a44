"""Read plan of a write, made before its branch: snapshots, full reads, and stale partitions."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import History, read_history
from lakehouse.iceberg.read.inputs import SINCE, Input
from lakehouse.iceberg.read.pinned_inputs import partition_appends, pin
from lakehouse.iceberg.read.rows_outside_partitions import was_outside_partitions
from lakehouse.iceberg.read.stale_partitions import commits_since, followed, stale_by_source
from lakehouse.iceberg.read.withdrawn_deliveries import Withdrawn, withdrawn_by_source
from lakehouse.iceberg.values.value_ranges import bound
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.tables.table import SOURCE_KEY, Append, IcebergTable, Merge


def were_read_further(
    target: History,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    partitions: Partitions | None,
) -> bool:
    """Whether some of a run's partitions were computed from rows after the watermark.

    False for a table of versions, where repeated rows are kept once.
    """
    if partitions is None or table.overwritten_by is None or table.versions is not None:
        return False
    sources = {inputs[name].table for name in partition_appends(inputs)}
    return any(_were_read_further(target, source, partitions) for source in sources)


def _were_read_further(target: History, source: str, partitions: Partitions) -> bool:
    watermark = target.watermark(source)
    if watermark is None:
        return False
    commits = list(commits_since(target, source, watermark))
    if not _are_all_kept(target, source, watermark, commits):
        # The partitions of expired commits are unknown.
        return True
    further = (commit for commit in commits if commit.read.get(source, watermark) != watermark)
    return any(_overlaps(commit, partitions) for commit in further)


def _are_all_kept(
    target: History, source: str, watermark: int, commits: list[CommitProperties]
) -> bool:
    """Whether the commits reach back to the one that set the watermark."""
    if target.line[-1].is_first_snapshot or any(
        commit.read.get(source) == watermark for commit in commits
    ):
        return True
    runs = [snapshot.commit for snapshot in target.line if snapshot.commit]
    return sum(bool(commit.read) for commit in runs) > len(commits)


def _overlaps(commit: CommitProperties, partitions: Partitions) -> bool:
    """Whether a commit computed rows of some partitions, which can have other bounds now."""
    if not (commit.merged_ranges and partitions.ranges):
        return not set(commit.partitions).isdisjoint(partitions.values)
    bounds = tuple((bound(low), bound(high)) for low, high in commit.merged_ranges)
    computed = Partitions((), bounds)
    # Two ranges overlap if one starts within the other.
    return any(partitions.touches(low) for low, _ in bounds) or any(
        computed.touches(low) for low, _ in partitions.merged_ranges
    )


@dataclass(frozen=True)
class ReadPlan:
    """The reads of one attempt of a write, valid until the next commit to the target."""

    target: History
    pins: Mapping[str, Pin]
    stale: Mapping[str, Set[Any]]
    """Stale values of the partition column by source; empty for a run without partitions."""
    withdrawn: Mapping[str, Withdrawn]
    """Withdrawn deliveries by source, since the target was last computed."""
    has_news: bool
    """Whether the write could change anything.

    False if all inputs are incremental and empty (or read a table of such an input again), or
    if another run computed the stale partitions meanwhile. Runs started by a user always
    recompute their partitions.
    """


def plan_read(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input], run: Run
) -> ReadPlan:
    """Plan the reads of a write; uses Spark only to find existing versions in other partitions."""
    target = read_history(engine, table.name)
    # A run started by a user recomputes partitions in full, but reads only new rows of a table
    # without partitions, unless it requests all.
    full_recompute = (
        run.reads_everything
        or (run.full_recompute and run.partitions is not None)
        or _was_declared_otherwise(target, table)
        or was_outside_partitions(engine, table, inputs, run.partitions)
        or were_read_further(target, table, inputs, run.partitions)
    )
    pin_inputs = partial(pin, engine, inputs, table.name, full_recompute=full_recompute)
    withdrawn_of = partial(
        withdrawn_by_source, engine, inputs, target=target, with_erasures=run.follows_erasures
    )
    pins = pin_inputs(reads_everything=run.reads_everything)
    withdrawn = withdrawn_of(pins)
    reason = _full_read_reason(table, inputs, pins, target, withdrawn)
    if reason:
        pins = pin_inputs(reads_everything=True, because=reason)
        withdrawn = withdrawn_of(pins)
    stale = stale_by_source(engine, table, inputs, pins, run.partitions)
    has_news = _has_news(table, inputs, run, pins, stale)
    return ReadPlan(target, pins, stale, withdrawn, has_news)


def _full_read_reason(
    table: IcebergTable,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    target: History,
    withdrawn: Mapping[str, Withdrawn],
) -> str:
    """Return why an incremental table must read all rows of its inputs; empty if it need not.

    Rows of a rejected delivery can have replaced rows of another input. Rows that are read
    again can replace newer rows of another input.
    """
    if all(pinned.since_snapshot_id is None for pinned in pins.values()):
        return ""
    arriving = {
        declared.table: pins[name]
        for name, declared in inputs.items()
        if declared.mode == "incremental"
    }
    # The function receives each key of removed rows.
    keyed_sources = {
        declared.table for declared in inputs.values() if declared.mode == "changed_keys"
    }
    has_unkeyed = bool(arriving) or not withdrawn.keys() <= keyed_sources
    if withdrawn and has_unkeyed and _loses_rejected_rows(table):
        return f"rows of a rejected delivery were removed from {', '.join(sorted(withdrawn))}"
    if not isinstance(table.write, Merge) or table.versions:
        return ""
    reread = [
        source
        for source, pinned in sorted(arriving.items())
        if pinned.since_snapshot_id is None and target.watermark(source) is not None
    ]
    return f"rows of {', '.join(reread)} are read again" if reread else ""


def _loses_rejected_rows(table: IcebergTable) -> bool:
    """Whether a table is merged or appended to, and loses the rows of rejected deliveries."""
    has_source = set(SOURCE_KEY) <= set(table.column_names)
    return isinstance(table.write, Merge) or (isinstance(table.write, Append) and has_source)


def _was_declared_otherwise(target: History, table: IcebergTable) -> bool:
    """Whether rules changed since the last write, or another tool wrote."""
    last = target.last_write
    if last is None or last.commit is None:
        return True
    return last.commit.declaration != table.declaration_hash


def _has_news(
    table: IcebergTable,
    inputs: Mapping[str, Input],
    run: Run,
    pins: Mapping[str, Pin],
    stale: Mapping[str, Set[Any]],
) -> bool:
    if run.partitions:
        if run.full_recompute or not followed(table, inputs):
            return True
        return any(map(run.partitions.is_computed_by, set().union(*stale.values())))
    since = [name for name, declared in inputs.items() if declared.mode in SINCE]
    followed_tables = {inputs[name].table for name in since}
    if any(declared.table not in followed_tables for declared in inputs.values()):
        return True
    return not since or any(not pins[name].is_empty for name in since)
