"""Decide which runs a feed needs now, or why none, from its inbox, tables and previous runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, takewhile
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.metadata.unchanged_watermarks import UNCHANGED_PROPERTY
from lakehouse.ingestion.collect import Waiting
from lakehouse.orchestration.asset_keys import FEED_TAG
from lakehouse.orchestration.backoff import pause_seconds
from lakehouse.orchestration.blocked_tables import (
    STALE,
    digest_of_run,
    find_blocking_run,
    find_requested_run,
    mains,
    was_blocked,
    was_stopped,
)
from lakehouse.orchestration.dagster_internals import selected_assets, selected_checks
from lakehouse.orchestration.partitions.partition_bounds import range_tags
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.orchestration.runs.runs_for_stale_tables import INCREMENTAL, Downstream
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shown
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

_STATUS = dg.DagsterRunStatus
_FAILED = (_STATUS.FAILURE, _STATUS.CANCELED)
_MOST_RUNS = 10


@dataclass(frozen=True)
class RunDecision:
    """The runs that a feed needs now, each with a digest of its inputs, or the reason for none."""

    runs: tuple[tuple[PendingRun, str], ...] = ()
    reason: str = ""
    is_settled: bool = False
    """Whether nothing is needed until a file arrives, a table changes or the day ends."""


@dataclass
class FeedRunPlanner:
    """Plans the runs of a feed, and caches the plan for a state of its tables."""

    feed: Feed
    declared: Mapping[str, IcebergTable]
    _state: object = None
    _done: list[list[PendingRun]] = field(default_factory=list)
    _rest: Iterator[list[PendingRun]] = field(default_factory=lambda: iter(()))

    def decide(
        self,
        instance: dg.DagsterInstance,
        graph: "AssetGraph",
        engine: Engine,
        waiting: Waiting,
        now: datetime,
    ) -> RunDecision:
        """Return the runs of the first stage in which something can run."""
        reason = describe_unfinished(instance, self.feed) or describe_pause(
            instance, self.feed, now
        )
        if reason:
            return RunDecision(reason=reason)
        downstream = Downstream(graph, self.feed.table)
        files = {
            file.key: file.version for file in waiting.files[: self.feed.max_files_per_run]
        }
        states = mains(engine, state_tables(downstream))
        moved_at, unchanged = _look_closer(engine, states)
        blocked = _BlockedTables(
            instance, downstream, self.declared, states, moved_at, self.feed, files
        )
        arrivals = bool(files) and not blocked.blocking_run(self.feed.table, ())
        day = now.astimezone(self.feed.zone).date()
        state = (arrivals, tuple(states.items()), moved_at, unchanged, day)
        for stage in self._stages(downstream, engine, state, arrivals=arrivals):
            runs = [run for stale in stage for run in blocked.not_blocked(stale)]
            requests = tuple((run, blocked.digest(run)) for run in runs)
            if requests:
                return RunDecision(requests)
        is_settled = not (blocked.blocked_by or blocked.still_stale or waiting.unsettled)
        reason = _explain_no_runs(self.feed, waiting, blocked)
        return RunDecision(reason=reason, is_settled=is_settled)

    def _stages(
        self, downstream: Downstream, engine: Engine, state: object, *, arrivals: bool
    ) -> Iterator[list[PendingRun]]:
        """Yield the stages; decisions for an unchanged state are cached."""
        if state != self._state:
            self._state, self._done = state, []
            self._rest = downstream.stages(engine, self.declared, has_arrivals=arrivals)
        yield from tuple(self._done)
        try:
            for stage in self._rest:
                self._done.append(stage)
                yield stage
        except Exception:
            self._state = None
            raise


def describe_unfinished(instance: dg.DagsterInstance, feed: Feed) -> str:
    """Describe the unfinished run of a feed, or return an empty string."""
    records = instance.get_run_records(
        dg.RunsFilter(tags={FEED_TAG: feed.name}, statuses=UNFINISHED), limit=1
    )
    if not records:
        return ""
    run = records[0].dagster_run
    return f"Run {run.run_id[:8]} of the feed is {run.status.value.lower()}; one at a time."


def describe_pause(instance: dg.DagsterInstance, feed: Feed, now: datetime) -> str:
    """Describe until when a feed waits after system failures; the wait grows with each failure."""
    records = instance.get_run_records(
        dg.RunsFilter(tags={FEED_TAG: feed.name}), limit=_MOST_RUNS
    )
    failed = list(takewhile(_failed_by_system, records))
    if not failed:
        return ""
    last = failed[0]
    finished_at = last.update_timestamp.replace(tzinfo=UTC)
    if last.end_time:
        finished_at = datetime.fromtimestamp(last.end_time, UTC)
    until = finished_at + timedelta(seconds=pause_seconds(len(failed)))
    if now >= until:
        return ""
    times = "The last run" if len(failed) == 1 else f"The last {len(failed)} runs"
    return (
        f"{times} failed, the newest is {last.dagster_run.run_id[:8]}; the next try is at"
        f" {until:%H:%M:%S} UTC. Files wait in the inbox, and tables stay"
        " stale."
    )


def make_requests(graph: "AssetGraph", feed: Feed, decided: RunDecision) -> list[dg.RunRequest]:
    return [_make_request(graph, feed, stale, digest) for stale, digest in decided.runs]


def _make_request(
    graph: "AssetGraph", feed: Feed, stale: PendingRun, digest: str
) -> dg.RunRequest:
    selection = stale.selection
    bounds = stale.partitions
    is_range = bounds is not None and bounds[0] != bounds[1]
    return dg.RunRequest(
        asset_selection=sorted(selected_assets(selection, graph)),
        asset_check_keys=sorted(selected_checks(selection, graph)),
        partition_key=bounds[0] if bounds and not is_range else None,
        tags={
            FEED_TAG: feed.name,
            **INCREMENTAL,
            STALE: digest,
            **(range_tags(*bounds) if bounds and is_range else {}),
            **stale.tags,
        },
    )


@dataclass
class _BlockedTables:
    """The tables that were blocked on their current inputs."""

    instance: dg.DagsterInstance
    downstream: Downstream
    declared: Mapping[str, IcebergTable]
    states: Mapping[str, int | None]
    moved_at: Mapping[str, str]
    feed: Feed
    files: Mapping[str, str]
    blocked_by: dict[str, str] = field(default_factory=dict)
    """The blocking runs by table."""
    still_stale: dict[str, str] = field(default_factory=dict)
    """Runs that succeeded but left their tables stale, by table. This should not happen; such a
    run is not repeated.
    """

    def not_blocked(self, stale: PendingRun) -> list[PendingRun]:
        """Return the parts of a stale run that can run.

        If a run with gaps was blocked, its contiguous ranges are tried separately, so that one
        bad day only blocks its own range.
        """
        before = dict(self.blocked_by)
        run = self._without_blocked(stale)
        if stale.parts and self.blocked_by != before:
            return [part for part in map(self._without_blocked, stale.parts) if part]
        return [run] if run else []

    def _without_blocked(self, stale: PendingRun) -> PendingRun | None:
        """Return a run without tables that would be blocked again and their dependents."""
        kept: list[str] = []
        skipped: set[str] = set()
        for table in stale.tables:
            sources = self.downstream.sources(table)
            is_fed = table == self.feed.table or bool(set(sources) & set(kept))
            if not is_fed and (
                set(sources) & skipped or self.blocking_run(table, stale.bounds)
            ):
                skipped.add(table)
            else:
                kept.append(table)
        run = replace(stale, tables=tuple(kept)) if kept else None
        return run if run and not self._was_in_vain(run) else None

    def _was_in_vain(self, run: PendingRun) -> bool:
        """Return whether the same run was blocked or changed nothing before on the same state."""
        before = find_requested_run(self.instance, self.digest(run))
        if before and was_stopped(before.tags):
            self.blocked_by |= dict.fromkeys(run.tables, before.run_id)
            return True
        if before and before.is_success:
            self.still_stale |= dict.fromkeys(run.tables, before.run_id)
            return True
        return False

    def digest(self, stale: PendingRun) -> str:
        """Return a digest of a run, the state of its tables and their declarations.

        After a rollback the tables have their earlier snapshots but must be computed again.
        Therefore the digest includes the time at which main moved to its snapshot.
        """
        declared = [self.declared.get(table) for table in stale.tables]
        states, files = sorted(self.states.items()), sorted(self.files.items())
        moved_at = [*self.moved_at.values()]
        if all(map(self.downstream.is_plain, stale.tables)):
            # Other tables and files of the feed do not trigger a plain asset.
            read = {*stale.tables, *chain(*map(self.downstream.sources, stale.tables))}
            states, files = [state for state in states if state[0] in read], []
            moved_at = [self.moved_at[name] for name, snapshot_id in states if snapshot_id]
        return digest_of_run((stale, declared, states, moved_at, files))

    def blocking_run(self, table: str, partitions: Sequence[str]) -> str | None:
        if table not in self.declared:
            return None
        states = {name: self.states.get(name) for name in self.downstream.read_now(table)}
        read = self.files if table == self.feed.table else states
        run_id = find_blocking_run(self.instance, self.declared[table], partitions, read)
        if run_id:
            self.blocked_by[table] = run_id
        return run_id


def state_tables(downstream: Downstream) -> list[str]:
    """Return the tables whose state determines what is stale."""
    tables = set(downstream.tables)
    for table in downstream.tables:
        tables.update(downstream.sources(table))
    return sorted(tables)


def _look_closer(
    engine: Engine, states: Mapping[str, int | None]
) -> tuple[dict[str, str], list[str | None]]:
    """Return, for each table with a snapshot, when main moved to it, and its `unchanged`
    property. That property records runs that read the inputs but changed no rows, and therefore
    made no snapshot.
    """
    moved_at, unchanged = {}, []
    for table, snapshot_id in states.items():
        if snapshot_id is not None:
            history = read_history(engine, table)
            moved_at[table] = history.log[-1][0].isoformat() if history.log else ""
            unchanged.append(history.properties.get(UNCHANGED_PROPERTY))
    return moved_at, unchanged


def _failed_by_system(record: dg.RunRecord) -> bool:
    run = record.dagster_run
    return run.status in _FAILED and not was_blocked(run.tags)


def _explain_no_runs(feed: Feed, waiting: Waiting, blocked: _BlockedTables) -> str:
    reasons = []
    for table, run_id in sorted(blocked.blocked_by.items()):
        reasons.append(f"{table} is blocked since run {run_id[:8]}.")
    if reasons:
        reasons.append(
            "It is tried again once its input or its declaration changes, or by `lakehouse"
            " retry TABLE`."
        )
    for table, run_id in sorted(blocked.still_stale.items()):
        reasons.append(
            f"{table} is as stale as before run {run_id[:8]} computed it; no run of it is"
            " requested again."
        )
    if waiting.unsettled:
        more = len(waiting.unsettled) - 3
        names = ", ".join(map(shown, waiting.unsettled[:3]))
        reasons.append(f"Still being written: {names}{f' and {more} more' * (more > 0)}.")
    if reasons:
        return " ".join(reasons)
    inbox = f"Nothing waits in {feed.inbox}"
    if waiting.missing:
        inbox = f"The folder {shown(waiting.missing)} is missing"
    return f"{inbox}, and no table has anything to compute."
