"""One sensor for all feeds of a project with many feeds. Every Dagster sensor costs the daemon
and the code server the same, even if its inbox is empty.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.ingestion.collect import Waiting, list_waiting_now
from lakehouse.ingestion.sensors.feed_sensors import (
    WATCH_SECONDS,
    FeedAutomation,
    ReadSettings,
    failed_check_report,
    resolve_failed_check,
    resolve_removed,
)
from lakehouse.ingestion.sensors.run_requests import (
    FeedRunPlanner,
    make_requests,
    state_tables,
)
from lakehouse.ingestion.skipped_entries import report_passed_over
from lakehouse.orchestration.asset_keys import ALL_ASSETS, FEED_TAG, FEEDS_SENSOR
from lakehouse.orchestration.dagster_internals import graph_of_repository
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.incident_reports import report_firing
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream
from lakehouse.orchestration.withheld_values import cause_without_data
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import namespace_of, namespaces_of
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

MOST_BY_THEMSELVES = 8
"""The maximum number of feeds with a sensor and job each. With more, Dagster describes every
job with all assets, and sensors wait for each other's threads.
"""
INBOXES = "inbox/"
_PAUSE_SECONDS = 2.0
_SETTLING_SECONDS = 0.5
"""The pause after a check that saw an unfinished file: the time it takes to settle."""
_POLL_SECONDS = 10.0
"""After this time a check starts no further feed. Dagster fails a tick after 60 seconds and
discards its requests; a tick can start its last check after half of that.
"""
_CATALOG_SECONDS = 10.0
"""How long metadata locations are cached within a tick; with Glue, listing them costs several
paid requests.
"""
_NAMED_FEEDS = 5


def feed_definitions(
    feeds: Sequence[Feed],
    declared: Mapping[str, IcebergTable],
    read_settings: ReadSettings,
    graph: "AssetGraph",
) -> dg.Definitions:
    """Return the sensors, schedules and jobs of the feeds."""
    names = frozenset(feed.name for feed in feeds)
    automations = [FeedAutomation(feed, declared, read_settings, names) for feed in feeds]
    if len(feeds) <= MOST_BY_THEMSELVES:
        return dg.Definitions.merge(*(one.definitions(graph) for one in automations))
    by_sensor = [feed for feed in feeds if feed.ingest_by != "schedule"]
    scheduled = [one.schedule() for one in automations if one.feed.ingest_by == "schedule"]
    sensors = [_shared_sensor(by_sensor, declared, read_settings)] if by_sensor else []
    return dg.Definitions.merge(dg.Definitions(sensors=sensors), *scheduled)


def _shared_sensor(
    feeds: Sequence[Feed], declared: Mapping[str, IcebergTable], read_settings: ReadSettings
) -> dg.SensorDefinition:
    """Return the sensor of all feeds without a schedule; it runs by default."""
    states = [_FeedState(FeedRunPlanner(feed, declared)) for feed in feeds]
    polling = FeedPolling(states, declared)

    @dg.sensor(
        job_name=ALL_ASSETS,
        name=FEEDS_SENSOR,
        minimum_interval_seconds=1,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Requests runs for new files in the inboxes of {len(feeds)} feeds, then"
            " runs for downstream tables; one run per feed at a time. It retries after a"
            " failure, and requests no run that would be blocked."
        ),
    )
    def files(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        # Dagster abandons a tick that takes too long, but the tick continues in this process.
        if not polling.running.acquire(blocking=False):
            return dg.SkipReason("The check of an earlier tick is still running.")
        try:
            return polling.watch(context, read_settings())
        finally:
            polling.running.release()

    return files


@dataclass
class _FeedState:
    """The state of a feed after its last check."""

    requests: FeedRunPlanner
    waiting: Waiting | None = None
    settled_at: object = None
    """The state of inbox, tables and day for which nothing was needed."""
    reason: str = ""
    """Why no run is requested, unless nothing is needed."""
    tables: Sequence[str] = ()
    """The tables whose state determines what is stale."""
    has_fresh: bool = False
    """Whether the check saw new files that are still being written."""

    @property
    def feed(self) -> Feed:
        return self.requests.feed

    def state_tables(self, graph: "AssetGraph") -> Sequence[str]:
        self.tables = self.tables or state_tables(Downstream(graph, self.feed.table))
        return self.tables


@dataclass
class FeedPolling:
    """Checks many feeds repeatedly.

    One check queries the unfinished runs once, the non-empty inboxes once and, after ten
    seconds, the metadata locations of all tables once. Everything else is queried only for
    feeds that changed since nothing was needed. A check that takes too long ends; the next one
    starts with the first feed that was not checked.
    """

    feeds: Sequence[_FeedState]
    declared: Mapping[str, IcebergTable]
    may_have_failed: set[str] = field(init=False)
    """Names of the feeds whose last check failed or is pending; a previous process may have
    reported them.
    """
    running: Lock = field(init=False, default_factory=Lock)
    """Held by the tick that is checking."""

    _first: int = field(init=False, default=0)
    """The index of the first feed of the next check."""
    _left: int = field(init=False, default=0)
    """The number of feeds that the last check did not reach."""
    _locations: Mapping[str, str] = field(init=False, default_factory=dict)
    _locations_until: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.may_have_failed = {one.feed.name for one in self.feeds}

    def watch(
        self, context: dg.SensorEvaluationContext, settings: Settings
    ) -> list[dg.RunRequest] | dg.SkipReason:
        """Poll until there is something to run, for at most one tick."""
        engine, until = open_engine(settings), time.monotonic() + WATCH_SECONDS
        self._locations_until = 0.0
        names = {one.feed.name for one in self.feeds}
        _try_report(context, lambda: resolve_removed(settings, names))
        while True:
            if requested := self.poll(context, settings, engine):
                return requested
            has_fresh = any(one.has_fresh for one in self.feeds)
            pause = _SETTLING_SECONDS if has_fresh else _PAUSE_SECONDS
            if time.monotonic() + pause > until:
                return dg.SkipReason(self.describe())
            time.sleep(pause)

    def poll(
        self, context: dg.SensorEvaluationContext, settings: Settings, engine: Engine
    ) -> list[dg.RunRequest]:
        """Return the runs that are needed now; a feed whose check fails is reported."""
        assert context.repository_def is not None
        graph, instance = graph_of_repository(context.repository_def), context.instance
        fail_orphaned_runs(instance)
        # Before the catalog query, so that the commits of finished runs are visible.
        busy = _busy_feeds(instance)
        engine = self._refresh_catalog(engine, graph)
        store, now = open_store(settings), datetime.now(UTC)
        one = _Poll(context, settings, engine, graph, store, self._locations, busy, now)
        occupied = store.occupied(INBOXES)
        requests: list[dg.RunRequest] = []
        for feed_state in self._in_time():
            try:
                requests += one.at(feed_state, is_occupied=feed_state.feed.name in occupied)
            except Exception as error:
                self._report(context, settings, feed_state.feed, error)
            else:
                self._resolve(context, settings, feed_state.feed)
        return requests

    def _in_time(self) -> Iterator[_FeedState]:
        """Yield feeds while the check has time, at least one."""
        until = time.monotonic() + _POLL_SECONDS
        first, self._first, self._left = self._first, 0, 0
        ordered = [*self.feeds[first:], *self.feeds[:first]]
        for place, feed_state in enumerate(ordered):
            if place and time.monotonic() >= until:
                self._left = len(ordered) - place
                self._first = (first + place) % len(ordered)
                return
            yield feed_state

    def _refresh_catalog(self, engine: Engine, graph: "AssetGraph") -> Engine:
        """Query the catalog if the cache expired, and return an engine with a fixed catalog."""
        if time.monotonic() < self._locations_until:
            return engine
        pinned_catalog = engine.catalog.with_cached_locations(self.declared)
        self._locations = {
            **pinned_catalog.metadata_locations(),
            **self._undeclared_locations(engine, graph),
        }
        self._locations_until = time.monotonic() + _CATALOG_SECONDS
        return replace(engine, catalog=pinned_catalog)

    def _undeclared_locations(self, engine: Engine, graph: "AssetGraph") -> dict[str, str]:
        """Return the metadata locations of tables in namespaces without declared tables.

        Each namespace is queried separately, since access to a Glue database of another team
        may be denied. Then it is left out, and reading its tables reports the error.
        """
        tables: set[str] = set()
        for feed_state in self.feeds:
            # The check of the feed reports the error.
            with suppress(Exception):
                tables.update(feed_state.state_tables(graph))
        locations: dict[str, str] = {}
        for namespace in sorted(namespaces_of(tables) - namespaces_of(self.declared)):
            of_namespace = [table for table in tables if namespace_of(table) == namespace]
            with suppress(Exception):
                locations |= engine.catalog.metadata_locations(of_namespace)
        return locations

    def describe(self) -> str:
        reasons = [f"{one.feed.name}: {one.reason}" for one in self.feeds if one.reason]
        if self._left:
            reasons.insert(0, f"{self._left} feeds are checked next.")
        if not reasons:
            return (
                f"Nothing waits in the inboxes of {len(self.feeds)} feeds, and no table has"
                " anything to compute."
            )
        more = len(reasons) - _NAMED_FEEDS
        if more > 0:
            reasons[_NAMED_FEEDS:] = [f"and {more} feeds more"]
        return "\n".join(reasons)

    def _report(
        self,
        context: dg.SensorEvaluationContext,
        settings: Settings,
        feed: Feed,
        error: Exception,
    ) -> None:
        cause = cause_without_data(error)
        context.log.error(f"Feed {feed.name} could not be checked: {cause}")
        self.may_have_failed.add(feed.name)
        _try_report(context, lambda: report_firing(settings, failed_check_report(feed, cause)))

    def _resolve(
        self, context: dg.SensorEvaluationContext, settings: Settings, feed: Feed
    ) -> None:
        if feed.name not in self.may_have_failed:
            return
        if _try_report(context, lambda: resolve_failed_check(settings, feed)):
            self.may_have_failed.discard(feed.name)


def _try_report(context: dg.SensorEvaluationContext, note: Callable[[], None]) -> bool:
    """Write a report and return whether it was written; if not, runs are still requested."""
    try:
        note()
    except Exception as error:
        context.log.error(f"A report could not be written: {cause_without_data(error)}")
        return False
    return True


def _busy_feeds(instance: dg.DagsterInstance) -> dict[str, str]:
    busy = {}
    for record in instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED)):
        run = record.dagster_run
        if FEED_TAG in run.tags:
            busy[run.tags[FEED_TAG]] = run.run_id
    return busy


@dataclass(frozen=True)
class _Poll:
    """One check of all feeds, with the results of the shared queries."""

    context: dg.SensorEvaluationContext
    settings: Settings
    engine: Engine
    graph: "AssetGraph"
    store: ObjectStore
    locations: Mapping[str, str]
    busy: Mapping[str, str]
    now: datetime

    def at(self, feed_state: _FeedState, *, is_occupied: bool) -> list[dg.RunRequest]:
        """Return the runs that a feed needs now; none while one of its runs is unfinished."""
        feed, feed_state.has_fresh = feed_state.feed, False
        if feed.name in self.busy:
            feed_state.reason = (
                f"Run {self.busy[feed.name][:8]} is not finished; one at a time."
            )
            return []
        if is_occupied:
            waiting = list_waiting_now(feed, self.store)
        else:
            waiting = Waiting(missing=self.store.missing(feed.inbox))
        if waiting != feed_state.waiting:
            feed_state.has_fresh = bool(waiting.unsettled)
            for warning in report_passed_over(self.settings, feed, waiting.passed_over):
                self.context.log.warning(warning)
            feed_state.waiting = waiting
        state = (
            waiting,
            [self.locations.get(table) for table in feed_state.state_tables(self.graph)],
            self.now.astimezone(feed.zone).date(),
        )
        if feed_state.settled_at == state:
            return []
        return self._requests(feed_state, waiting, state)

    def _requests(
        self, feed_state: _FeedState, waiting: Waiting, state: object
    ) -> list[dg.RunRequest]:
        instance, graph, engine = self.context.instance, self.graph, self.engine
        decided = feed_state.requests.decide(instance, graph, engine, waiting, self.now)
        feed_state.settled_at = state if decided.is_settled else None
        is_reported = waiting.missing or not decided.is_settled
        feed_state.reason = decided.reason if is_reported else ""
        return make_requests(graph, feed_state.feed, decided)
