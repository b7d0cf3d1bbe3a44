"""The runs of `lakehouse ingest`: land the waiting files and compute stale downstream tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

import dagster as dg

from lakehouse.errors import TableNotFound
from lakehouse.ingestion.ad_hoc_files import (
    AD_HOC_TAG,
    NAME_IT,
    copy_ad_hoc_files,
    list_passed_over,
    select_store,
)
from lakehouse.ingestion.collect import list_waiting
from lakehouse.ingestion.skipped_entries import hidden_files, passed_over_lines
from lakehouse.orchestration.asset_keys import FEED_TAG, PATH_TAG, asset_key
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.metadata_keys import LandedFile, RejectedReason
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.orchestration.runs.run_in_process import MakeDefinitions, OnEvent, materialize
from lakehouse.orchestration.runs.run_progress import (
    RunProgress,
    TableProgress,
    tables_of_steps,
)
from lakehouse.orchestration.runs.run_result import AssetResult, RunResult
from lakehouse.orchestration.runs.runs_for_stale_tables import INCREMENTAL, Downstream
from lakehouse.settings import Settings
from lakehouse.storage.rejected_files import rejected_since
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class IngestResult:
    """The result of an ingest. `runs` is empty if nothing was stale; then Spark was not
    started.

    The first run lands the files; partitioned tables follow in as few runs as their size
    allows. `unsettled` are files still being written; the next ingest collects them. `unreported`
    are files rejected by a run that failed before it reported them. `passed_over` describes
    skipped inbox entries. `missing` is the inbox folder if it does not exist.
    """

    feed: Feed
    runs: tuple[RunResult, ...] = ()
    unsettled: tuple[str, ...] = ()
    unreported: tuple[RejectedReason, ...] = ()
    passed_over: tuple[str, ...] = ()
    missing: str | None = None

    @property
    def success(self) -> bool:
        return all(run.success for run in self.runs) and not self.rejected

    @property
    def landed(self) -> tuple[LandedFile, ...]:
        """The files in bronze; those of a failed write wait in the inbox."""
        done = (landing for landing in self._landings if landing.status != "failed")
        return tuple(file for landing in done for file in landing.landing.landed)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(file.file for file in self.landed)

    @property
    def rows(self) -> int:
        """The rows that bronze received, before cleaning."""
        return sum(landing.write.nr_rows or 0 for landing in self._landings)

    @property
    def suppressed_rows(self) -> int:
        return sum(landing.landing.suppressed_rows or 0 for landing in self._landings)

    @property
    def rejected(self) -> tuple[RejectedReason, ...]:
        reported = [file for landing in self._landings for file in landing.landing.rejected]
        return (*reported, *(file for file in self.unreported if file not in reported))

    @property
    def assets(self) -> tuple[AssetResult, ...]:
        return tuple(asset for run in self.runs for asset in run.assets)

    @property
    def quarantined(self) -> dict[str, int]:
        """The number of newly quarantined rows by table."""
        new_rows: Counter[str] = Counter()
        for asset in self.assets:
            new_rows[asset.table] += asset.quarantine.new_rows or 0
        return {table: rows for table, rows in new_rows.items() if rows}

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(message for run in self.runs for message in run.messages)

    @property
    def lacking_tables(self) -> frozenset[str]:
        """Tables that were not computed because an input table does not exist yet."""
        lacking = (asset for asset in self.assets if asset.error == TableNotFound.__name__)
        return frozenset(asset.table for asset in lacking)

    def without_lacking(self) -> "IngestResult":
        """Return the result without runs that failed because a table does not exist yet."""
        return replace(self, runs=tuple(map(_without_lacking, self.runs)))

    @property
    def _landings(self) -> list[AssetResult]:
        return [asset for asset in self.assets if asset.table == self.feed.table]


def _without_lacking(run: RunResult) -> RunResult:
    kept = tuple(asset for asset in run.assets if asset.error != TableNotFound.__name__)
    if kept == run.assets:
        return run
    without = replace(run, assets=kept, message="")
    return replace(without, success=not without.messages)


def ingest(
    project: MakeDefinitions,
    declared: Mapping[str, IcebergTable],
    settings: Settings,
    feed: Feed,
    *,
    path: str | None = None,
    on_event: OnEvent | None = None,
    on_progress: Callable[[TableProgress], object] = lambda _: None,
) -> IngestResult:
    """Land the files that wait in a feed's inbox, and update all downstream tables.

    It stops at the first run that fails; the next ingest computes the rest.

    :param declared: the declared tables by name.
    :param path: ingest these files instead of the inbox; the originals stay (see
        `ad_hoc_files`).
    :param on_progress: receives the progress of each table at its start and end.
    :raises UsageError: if the path contains no file.
    """
    if path is not None:
        with copy_ad_hoc_files(settings, feed, path) as folder:
            tags = {AD_HOC_TAG: str(folder), PATH_TAG: path}
            result = _ingest(project, declared, settings, feed, tags, on_event, on_progress)
        return replace(
            result, passed_over=passed_over_lines(list_passed_over(feed, path), NAME_IT)
        )
    return _ingest(project, declared, settings, feed, {}, on_event, on_progress)


def _ingest(
    project: MakeDefinitions,
    declared: Mapping[str, IcebergTable],
    settings: Settings,
    feed: Feed,
    tags: Mapping[str, str],
    on_event: OnEvent | None,
    on_progress: Callable[[TableProgress], object],
) -> IngestResult:
    started_at = datetime.now(UTC)
    here, engine = project(lambda: settings), open_engine(settings)
    graph = asset_graph(here)
    progress = RunProgress(tables_of_steps(graph), on_progress)

    def watch(event: dg.DagsterEvent) -> None:
        progress.on_event(event)
        if on_event is not None:
            on_event(event)

    with open_instance(settings) as instance:
        fail_orphaned_runs(instance)
        store = select_store(open_store(settings), feed, tags.get(AD_HOC_TAG))
        waiting = list_waiting(feed, store)
        downstream = Downstream(graph, feed.table)
        stages = _watched(
            progress, downstream.stages(engine, declared, has_arrivals=bool(waiting.files))
        )

        def run(stale: PendingRun) -> RunResult:
            return materialize(
                here,
                instance,
                stale.selection,
                partition=stale.partitions,
                tags={FEED_TAG: feed.name, **INCREMENTAL, **stale.tags, **tags},
                on_event=watch,
            )

        runs = tuple(_run_stages(stages, run, lambda done: _has_more_files(done, feed)))
    unreported: tuple[RejectedReason, ...] = ()
    landings = [run.asset(feed.table) for run in runs]
    if any(landing and landing.status == "failed" for landing in landings):
        unreported = list_rejected_since(settings, feed, started_at)
    return IngestResult(
        feed,
        runs,
        waiting.unsettled,
        unreported,
        (
            *passed_over_lines(waiting.passed_over),
            *passed_over_lines(hidden_files(feed, store)),
        ),
        waiting.missing,
    )


def list_rejected_since(
    settings: Settings, feed: Feed, since: datetime
) -> tuple[RejectedReason, ...]:
    """Return the files rejected since a timestamp, also by an ingest that failed before it
    reported.
    """
    rejections = rejected_since(open_store(settings), feed.rejected, since)
    return tuple(
        RejectedReason(file.source_file, f"{file.why} {file.next_step}".strip(), file.key)
        for file in rejections
    )


def retry(
    project: MakeDefinitions,
    declared: Mapping[str, IcebergTable],
    settings: Settings,
    table: str,
) -> tuple[RunResult, ...]:
    """Compute the stale partitions of a table and its downstream tables, even if they were
    blocked before.

    An unpartitioned table that is up to date is recomputed if its last run failed. For example,
    its function was wrong and the run was requested manually; its incident stays open until a
    run succeeds. It stops at the first run that fails.
    """
    here, engine = project(lambda: settings), open_engine(settings)
    graph = asset_graph(here)
    with open_instance(settings) as instance:
        fail_orphaned_runs(instance)

        def run(stale: PendingRun) -> RunResult:
            return materialize(
                here,
                instance,
                stale.selection,
                partition=stale.partitions,
                tags={**INCREMENTAL, **stale.tags},
            )

        def run_stale() -> tuple[RunResult, ...]:
            stages = Downstream(graph, table).stages(engine, declared, has_arrivals=False)
            return tuple(_run_stages(stages, run))

        runs = run_stale()
        is_partitioned = graph.get(asset_key(table)).is_partitioned
        if runs or is_partitioned or not _failed_last(instance, table):
            return runs
        again = materialize(here, instance, dg.AssetSelection.assets(asset_key(table)))
        return (again, *run_stale()) if again.success else (again,)


def _failed_last(instance: dg.DagsterInstance, table: str) -> bool:
    """Return whether the last run of a table failed and no materialization was recorded since."""
    for record in instance.get_asset_records([asset_key(table)]):
        entry = record.asset_entry
        last = instance.get_run_record_by_id(entry.last_run_id) if entry.last_run_id else None
        if last and last.dagster_run.status == dg.DagsterRunStatus.FAILURE:
            recorded = entry.last_materialization_record
            return recorded is None or recorded.timestamp < (last.end_time or 0.0)
    return False


def _run_stages(
    stages: Iterable[list[PendingRun]],
    run: Callable[[PendingRun], RunResult],
    has_more: Callable[[RunResult], bool] = lambda _: False,
) -> Iterator[RunResult]:
    """Run stages in order up to the first failure; repeat a run that has more files."""
    for stale in chain.from_iterable(stages):
        done = run(stale)
        yield done
        while done.success and has_more(done):
            done = run(stale)
            yield done
        if not done.success:
            return


def _watched(
    progress: RunProgress, stages: Iterable[list[PendingRun]]
) -> Iterator[list[PendingRun]]:
    for stage in stages:
        progress.begin_stage(stage)
        yield stage


def _has_more_files(run: RunResult, feed: Feed) -> bool:
    landed = run.asset(feed.table)
    return bool(landed and landed.landing.waiting_files)
