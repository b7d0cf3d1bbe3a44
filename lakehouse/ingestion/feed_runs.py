"""What an ingest of a feed owes, and the runs that do it: whatever waits in the inbox, and
whatever lags behind it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import dagster as dg

from lakehouse.ingestion.ad_hoc_files import (
    GIVEN_TAG,
    NAME_IT,
    PATH_TAG,
    copied,
    given_store,
    passed_over_at,
)
from lakehouse.ingestion.collect import waiting
from lakehouse.ingestion.skipped_entries import passed_over_lines
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key
from lakehouse.orchestration.dead_runs import fail_dead_runs
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.metadata_keys import RejectedReason
from lakehouse.orchestration.run_result import AssetResult, RunResult
from lakehouse.orchestration.runs import OnEvent, Project, materialize
from lakehouse.orchestration.stale_runs import INCREMENTAL, Downstream, PendingRun
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.storage.rejected_files import rejected_since
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class IngestResult:
    """What an ingest did; no `runs` where nothing was owed, and then no Spark was started.

    The first run lands the files; tables that are computed by days follow in one for each range
    of neighbouring days. `unsettled` are the files that are still being written; the next
    ingest takes them. `refused` are those rejected by a run that failed before it could say so.
    `passed_over` says of what in the inbox is no file that nobody takes it. `missing` is the
    inbox's folder where there is none.
    """

    feed: Feed
    runs: tuple[RunResult, ...] = ()
    unsettled: tuple[str, ...] = ()
    refused: tuple[RejectedReason, ...] = ()
    passed_over: tuple[str, ...] = ()
    missing: str | None = None

    @property
    def success(self) -> bool:
        """Whether the runs succeeded, and each file was what the feed declares."""
        return all(run.success for run in self.runs) and not self.rejected

    @property
    def files(self) -> tuple[str, ...]:
        """The files that bronze has now."""
        return tuple(file.file for landing in self._landings for file in landing.landing.landed)

    @property
    def rows(self) -> int:
        """The rows that bronze got, before any cleaning."""
        return sum(landing.write.nr_rows or 0 for landing in self._landings)

    @property
    def rejected(self) -> tuple[RejectedReason, ...]:
        """The files that were refused as a whole."""
        reported = [file for landing in self._landings for file in landing.landing.rejected]
        return (*reported, *(file for file in self.refused if file not in reported))

    @property
    def assets(self) -> tuple[AssetResult, ...]:
        """What became of each asset of each run, in order."""
        return tuple(asset for run in self.runs for asset in run.assets)

    @property
    def quarantined(self) -> dict[str, int]:
        """How many rows each table refused for the first time; those that refused none are left
        out.
        """
        new_rows: Counter[str] = Counter()
        for asset in self.assets:
            new_rows[asset.table] += asset.quarantine.new_rows or 0
        return {table: rows for table, rows in new_rows.items() if rows}

    @property
    def messages(self) -> tuple[str, ...]:
        """Why runs failed."""
        return tuple(message for run in self.runs for message in run.messages)

    @property
    def _landings(self) -> list[AssetResult]:
        return [asset for asset in self.assets if asset.table == self.feed.table]


def ingest(
    project: Project,
    declared: Mapping[str, IcebergTable],
    settings: Settings,
    feed: Feed,
    *,
    path: str | None = None,
    on_event: OnEvent | None = None,
) -> IngestResult:
    """Land what waits in a feed's inbox, and bring every table downstream of it up to date.

    It ends with the first run that fails: what is left is owed, and the next ingest does it.

    :param declared: the declared tables by name.
    :param path: files to take instead of those in the inbox; they stay where they are (see
        `ad_hoc_files`).
    :raises UsageError: when nothing is at that path.
    """
    if path is not None:
        with copied(settings, feed, path) as folder:
            tags = {GIVEN_TAG: str(folder), PATH_TAG: path}
            done = _ingest(project, declared, settings, feed, tags, on_event)
        return replace(done, passed_over=passed_over_lines(passed_over_at(feed, path), NAME_IT))
    return _ingest(project, declared, settings, feed, {}, on_event)


def _ingest(
    project: Project,
    declared: Mapping[str, IcebergTable],
    settings: Settings,
    feed: Feed,
    tags: Mapping[str, str],
    on_event: OnEvent | None,
) -> IngestResult:
    began_at = datetime.now(UTC)
    here, engine = project(lambda: settings), open_engine(settings)
    with open_instance(settings) as instance:
        fail_dead_runs(instance)
        found = waiting(feed, given_store(open_store(settings), feed, tags.get(GIVEN_TAG)))
        downstream = Downstream(here.resolve_asset_graph(), feed.table)
        stages = downstream.stages(engine, declared, has_arrivals=bool(found.files))

        def run(stale: PendingRun) -> RunResult:
            said = {FEED_TAG: feed.name, **INCREMENTAL, **tags}
            return materialize(
                here,
                instance,
                stale.selection,
                partition=stale.partitions,
                tags=said,
                on_event=on_event,
            )

        runs = tuple(_do(stages, run, lambda done: _left_waiting(done, feed)))
    landings = [run.asset(feed.table) for run in runs]
    is_unreported = any(
        landing is not None and landing.status == "failed" for landing in landings
    )
    refused = refused_since(settings, feed, began_at) if is_unreported else ()
    return IngestResult(
        feed,
        runs,
        found.unsettled,
        refused,
        passed_over_lines(found.passed_over),
        found.missing,
    )


def refused_since(
    settings: Settings, feed: Feed, moment: datetime
) -> tuple[RejectedReason, ...]:
    """Return the files of a feed that were rejected since a moment: what an ingest did that
    could not say so itself.
    """
    found = rejected_since(open_store(settings), feed.rejected, moment)
    return tuple(
        RejectedReason(one.source_file, f"{one.why} {one.next_step}".strip(), one.key)
        for one in found
    )


def retry(
    project: Project,
    declared: Mapping[str, IcebergTable],
    settings: Settings,
    table: str,
) -> tuple[RunResult, ...]:
    """Compute what a table owes, and what follows from it, also where it was refused before; no
    run where it owes none.

    One without partitions that owes nothing is computed all the same where its last run failed,
    as one that somebody asked for does whose function was wrong: until a run succeeds, that
    stands as broken. It ends with the first run that fails.
    """
    here, engine = project(lambda: settings), open_engine(settings)
    graph = here.resolve_asset_graph()
    with open_instance(settings) as instance:
        fail_dead_runs(instance)

        def run(stale: PendingRun) -> RunResult:
            return materialize(
                here, instance, stale.selection, partition=stale.partitions, tags=INCREMENTAL
            )

        def catch_up() -> tuple[RunResult, ...]:
            return tuple(
                _do(Downstream(graph, table).stages(engine, declared, has_arrivals=False), run)
            )

        done = catch_up()
        if (
            done
            or graph.get(asset_key(table)).is_partitioned
            or not _failed_last(instance, table)
        ):
            return done
        again = materialize(here, instance, dg.AssetSelection.assets(asset_key(table)))
        return (again, *catch_up()) if again.success else (again,)


def _failed_last(instance: dg.DagsterInstance, table: str) -> bool:
    """Whether the last run that was to compute a table failed, and nothing was recorded of the
    table since.
    """
    entry = next(
        (record.asset_entry for record in instance.get_asset_records([asset_key(table)])), None
    )
    last = (
        instance.get_run_record_by_id(entry.last_run_id)
        if entry and entry.last_run_id
        else None
    )
    if entry is None or last is None or last.dagster_run.status != dg.DagsterRunStatus.FAILURE:
        return False
    recorded = entry.last_materialization_record
    return recorded is None or recorded.timestamp < (last.end_time or 0.0)


def _do(
    stages: Iterable[list[PendingRun]],
    run: Callable[[PendingRun], RunResult],
    has_more: Callable[[RunResult], bool] = lambda _: False,
) -> Iterator[RunResult]:
    """Run one after the other, up to the first that fails; one that left something is done
    again.
    """
    for stale in (stale for stage in stages for stale in stage):
        done = run(stale)
        yield done
        while done.success and has_more(done):
            done = run(stale)
            yield done
        if not done.success:
            return


def _left_waiting(run: RunResult, feed: Feed) -> bool:
    landed = run.asset(feed.table)
    return bool(landed and landed.landing.waiting_files)
