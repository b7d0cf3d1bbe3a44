"""The automation of a feed: a sensor that reacts to new files, or a schedule."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.ingestion.collect import Waiting, list_waiting
from lakehouse.ingestion.processed_files import list_unprocessed
from lakehouse.ingestion.sensors.run_requests import (
    FeedRunPlanner,
    describe_unfinished,
    make_requests,
)
from lakehouse.ingestion.skipped_entries import report_passed_over
from lakehouse.orchestration.asset_keys import ALL_ASSETS, FEED_TAG
from lakehouse.orchestration.dagster_internals import graph_of_repository
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.incident_reports import Report, report_resolved, unresolved_keys
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph


_PREFIX = "feed "
"""The key prefix of these reports; the feed name follows."""


def failed_check_report(feed: Feed, cause: str) -> Report:
    return Report(
        f"{_PREFIX}{feed.name}",
        f"feed {feed.name} could not be checked",
        (cause, "Its files are not ingested automatically until then; they wait in the inbox."),
        (f"lakehouse ingest {feed.name}", "lakehouse doctor"),
        table=feed.table,
    )


def resolve_failed_check(settings: Settings, feed: Feed) -> None:
    """Report a feed as checked again, if it was reported."""
    report_resolved(settings, f"{_PREFIX}{feed.name}", "It was checked again.")


def resolve_removed(settings: Settings, checked: Collection[str]) -> None:
    """Resolve the reports of feeds that are not checked any more, such as removed ones."""
    for key in sorted(unresolved_keys(settings, _PREFIX)):
        if key.removeprefix(_PREFIX) not in checked:
            report_resolved(settings, key, "The sensor does not check it any more.")


WATCH_SECONDS = 4.5
"""How long a tick polls: Dagster's daemon begins its rounds no closer than five seconds to each
other.
"""
_RUN_POLL_SECONDS = 0.2
ReadSettings = Callable[[], Settings]


def poll_inbox(feed: Feed, store: ObjectStore, seconds: float, seen: Waiting) -> Waiting:
    """Poll until a new complete file waits, or the time is over."""
    known = set(seen.files)

    def has_new() -> bool:
        return any(file not in known for file in list_unprocessed(feed, store))

    if not wait_until(has_new, seconds, store.poll_seconds):
        return seen
    return list_waiting(feed, store)


def wait_until(is_so: Callable[[], bool], seconds: float, pause: float) -> bool:
    """Poll a condition, at least once, and return whether it became true in time."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() + pause > until:
            return False
        time.sleep(pause)
    return True


@dataclass(frozen=True)
class FeedAutomation:
    """A feed's job and its sensor or schedule, as the feed declares. The unused one is not
    defined, since the UI would show it as stopped.
    """

    feed: Feed
    declared: Mapping[str, IcebergTable]
    read_settings: ReadSettings
    names: Collection[str]
    """Names of all feeds of the project."""

    def schedule(self) -> dg.Definitions:
        """Return only the schedule, targeting Dagster's implicit asset job."""
        return dg.Definitions(schedules=[self._schedule(ALL_ASSETS)])

    def definitions(self, graph: "AssetGraph") -> dg.Definitions:
        """Return the job and its sensor or schedule."""
        downstream = Downstream(graph, self.feed.table)
        if not downstream.is_alike:
            return self._automation(ALL_ASSETS)
        job = dg.define_asset_job(
            f"ingest_{self.feed.name}",
            selection=downstream.everything.selection,
            description=(
                f"Lands the files in {self.feed.inbox}, and computes all downstream tables."
            ),
            tags={FEED_TAG: self.feed.name},
        )
        return dg.Definitions.merge(dg.Definitions(jobs=[job]), self._automation(job.name))

    def _automation(self, job_name: str) -> dg.Definitions:
        if self.feed.ingest_by == "schedule":
            return dg.Definitions(schedules=[self._schedule(job_name)])
        return dg.Definitions(sensors=[self._sensor(job_name)])

    def _sensor(self, job_name: str) -> dg.SensorDefinition:
        requests = FeedRunPlanner(self.feed, self.declared)

        @dg.sensor(
            job_name=job_name,
            name=f"{self.feed.name}_files",
            minimum_interval_seconds=1,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                f"Requests a run for new files in {self.feed.inbox}, then runs for downstream"
                " tables; one run at a time. It retries after a failure, and requests no run"
                " that would be blocked."
            ),
        )
        def files(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
            return self._poll(context, requests, WATCH_SECONDS)

        return files

    def _schedule(self, job_name: str) -> dg.ScheduleDefinition:
        requests = FeedRunPlanner(self.feed, self.declared)

        @dg.schedule(
            job_name=job_name,
            name=f"{self.feed.name}_batch",
            cron_schedule=self.feed.schedule,
            execution_timezone=self.feed.time_zone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=f"Ingests what waits in {self.feed.inbox}, and computes what is stale.",
        )
        def batch(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
            return self._poll(context, requests, 0)

        return batch

    def _poll(
        self,
        context: dg.SensorEvaluationContext | dg.ScheduleEvaluationContext,
        requests: FeedRunPlanner,
        seconds: float,
    ) -> list[dg.RunRequest] | dg.SkipReason:
        """Return the runs that are needed; wait some seconds for the first one."""
        until = time.monotonic() + seconds
        assert context.repository_def is not None
        graph, instance = graph_of_repository(context.repository_def), context.instance
        settings = self.read_settings()
        engine, store = open_engine(settings), open_store(settings)
        resolve_removed(settings, self.names)
        fail_orphaned_runs(instance)
        wait_until(
            lambda: not describe_unfinished(instance, self.feed), seconds, _RUN_POLL_SECONDS
        )
        waiting = list_waiting(self.feed, store)
        for warning in report_passed_over(settings, self.feed, waiting.passed_over):
            context.log.warning(warning)
        decided = requests.decide(instance, graph, engine, waiting, datetime.now(UTC))
        # A shared sensor of an earlier configuration may have reported this feed.
        resolve_failed_check(settings, self.feed)
        if not decided.runs:
            later = poll_inbox(self.feed, store, until - time.monotonic(), waiting)
            if later != waiting:
                decided = requests.decide(instance, graph, engine, later, datetime.now(UTC))
        if not decided.runs:
            return dg.SkipReason(decided.reason)
        return make_requests(graph, self.feed, decided)
