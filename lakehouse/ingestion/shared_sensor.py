"""What runs many feeds: one sensor that sees the files of all, since each sensor of Dagster costs
the daemon, the server of code and its threads as much whether its inbox is empty or not.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.ingestion.collect import Waiting, list_waiting_now
from lakehouse.ingestion.feed_sensors import WATCH_SECONDS, FeedAutomation, ReadSettings
from lakehouse.ingestion.run_requests import (
    FeedRunRequests,
    make_requests,
    state_tables,
)
from lakehouse.ingestion.skipped_entries import left_hidden_files, report_passed_over
from lakehouse.ingestion.undeclared_tables import undeclared_locations
from lakehouse.ingestion.unlooked_feeds import resolve_looked, resolve_removed, unlooked
from lakehouse.orchestration.asset_keys import ALL_ASSETS, FEED_TAG, FEEDS_SENSOR
from lakehouse.orchestration.dagster_internals import graph_of_repository, is_stopped
from lakehouse.orchestration.dead_runs import fail_dead_runs
from lakehouse.orchestration.incident_reports import report_firing
from lakehouse.orchestration.long_ticks import LongTick, long_tick
from lakehouse.orchestration.run_failures.withheld_values import cause_without_data
from lakehouse.orchestration.runs import UNFINISHED
from lakehouse.orchestration.runs_for_stale_tables import Downstream
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

MOST_BY_THEMSELVES = 8
"""Feeds up to which each has a sensor and a job of its own; of more, Dagster would describe each
job with all assets of the project, and a sensor would wait for the threads of the others.
"""
INBOXES = "inbox/"
_PAUSE_SECONDS = 2.0
_SETTLING_SECONDS = 0.5
"""The pause after a look that saw a file which is being written: as long as it takes to settle."""
_LOOK_SECONDS = 10.0
"""After which a look begins with no further feed. A tick that takes more than 60 seconds fails,
and what it asked for is lost; it may begin its last look after half of them.
"""
_CATALOG_SECONDS = 10.0
"""How long it counts within a tick where the metadata of the tables is: of Glue, that is some
requests, and paid for.
"""
_NAMED_FEEDS = 5
_HIDDEN_EVERY = timedelta(minutes=10)
"""How often an inbox that holds anything is looked through for files that are hidden."""


def feed_definitions(
    feeds: Sequence[Feed],
    declared: Mapping[str, IcebergTable],
    read_settings: ReadSettings,
    graph: "AssetGraph",
) -> dg.Definitions:
    """Return what runs some feeds by themselves.

    :param graph: the assets of the project.
    """
    names = frozenset(feed.name for feed in feeds)
    automations = [FeedAutomation(feed, declared, read_settings, names) for feed in feeds]
    if len(feeds) <= MOST_BY_THEMSELVES:
        return dg.Definitions.merge(*(one.definitions(graph) for one in automations))
    by_sensor = [feed for feed in feeds if feed.ingest_by != "schedule"]
    scheduled = [one.schedule() for one in automations if one.feed.ingest_by == "schedule"]
    shared = SharedSensor(by_sensor, declared, read_settings)
    sensors = [shared.sensor()] if by_sensor else []
    return dg.Definitions.merge(dg.Definitions(sensors=sensors), *scheduled)


@dataclass(frozen=True)
class SharedSensor:
    """The sensor of many feeds."""

    feeds: Sequence[Feed]
    declared: Mapping[str, IcebergTable]
    read_settings: ReadSettings

    def sensor(self) -> dg.SensorDefinition:
        """Return it; it is on by itself."""
        looks = FeedLooks(
            [_FeedLook(FeedRunRequests(feed, self.declared)) for feed in self.feeds],
            self.declared,
        )

        @dg.sensor(
            job_name=ALL_ASSETS,
            name=FEEDS_SENSOR,
            minimum_interval_seconds=1,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                f"Sees files that land in the inboxes of {len(self.feeds)} feeds and asks for the"
                " runs that ingest them, then for what follows from them; one run of a feed at a"
                " time. It asks again after a failure, and not for what would be refused."
            ),
        )
        def files(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
            # A tick that took too long is over for Dagster, and goes on here.
            if not looks.going_on.acquire(blocking=False):
                return dg.SkipReason("The look of an earlier tick goes on.")
            try:
                return self._watch(context, looks)
            finally:
                looks.going_on.release()

        return files

    def _watch(
        self, context: dg.SensorEvaluationContext, looks: "FeedLooks"
    ) -> list[dg.RunRequest] | dg.SkipReason:
        """Look until there is something to run, as long as the tick may go on."""
        settings = self.read_settings()
        with long_tick(context, settings) as tick:
            engine = open_engine(settings)
            if tick.may_go_on:
                engine.catalog.kept()
            until = time.monotonic() + WATCH_SECONDS
            looks.begin_tick(context, settings)
            asked = looks.look(context, settings, engine)
            while not asked and _waits(tick, looks.pause_seconds, until):
                asked = looks.look(context, settings, engine)
                if asked and is_stopped(context):
                    return dg.SkipReason("The sensor was stopped.")
        return asked or dg.SkipReason(looks.describe())


def _waits(tick: LongTick, seconds: float, until: float) -> bool:
    """Wait until the next look; whether there is one."""
    if tick.may_go_on:
        return tick.waits(seconds)
    if time.monotonic() + seconds > until:
        return False
    time.sleep(seconds)
    return True


@dataclass
class _FeedLook:
    """What the last look at a feed saw, and found."""

    requests: FeedRunRequests
    waiting: Waiting | None = None
    settled_at: object = None
    """The state of inbox, tables and day at which nothing was needed."""
    reason: str = ""
    """Why no run is asked for, where it is not that nothing is needed."""
    tables: Sequence[str] = ()
    """The tables whose state tells what is stale."""
    reported_at: datetime | None = None
    """When what is not taken of it was reported last."""
    has_hidden: bool = False
    """Whether a file was among that which its name hides."""
    has_fresh: bool = False
    """Whether a file was seen for the first time while it was being written."""

    @property
    def feed(self) -> Feed:
        """The feed."""
        return self.requests.feed

    def state_tables(self, graph: "AssetGraph") -> Sequence[str]:
        """Return the tables whose state tells what is stale."""
        self.tables = self.tables or state_tables(Downstream(graph, self.feed.table))
        return self.tables


@dataclass
class FeedLooks:
    """Looks at many feeds at once, again and again.

    One look asks once for the runs that go on, once which inboxes hold anything, and where ten
    seconds are over, once where the metadata of all tables is. All else is asked for feeds of which
    something changed since nothing was needed of them. A look that takes too long ends, and the
    next one begins at the feed that it did not come to.
    """

    feeds: Sequence[_FeedLook]
    declared: Mapping[str, IcebergTable]
    may_have_failed: set[str] = field(init=False)
    """Names of the feeds that could not be looked at last, or were not looked at yet: a process
    before this one may have reported them.
    """
    going_on: Lock = field(init=False, default_factory=Lock)
    """Held by the tick that looks."""

    _first: int = field(init=False, default=0)
    """The place of the feed with which the next look begins."""
    _left: int = field(init=False, default=0)
    """How many feeds the last look did not come to."""
    _locations: Mapping[str, str] = field(init=False, default_factory=dict)
    _locations_until: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.may_have_failed = {one.feed.name for one in self.feeds}

    @property
    def pause_seconds(self) -> float:
        """How long to wait until the next look."""
        has_fresh = any(one.has_fresh for one in self.feeds)
        return _SETTLING_SECONDS if has_fresh else _PAUSE_SECONDS

    def begin_tick(self, context: dg.SensorEvaluationContext, settings: Settings) -> None:
        """Have the next look ask the catalog; what was reported of feeds that are not among these
        is over.
        """
        self._locations_until = 0.0
        names = {one.feed.name for one in self.feeds}
        _is_noted(context, lambda: resolve_removed(settings, names))

    def look(
        self, context: dg.SensorEvaluationContext, settings: Settings, engine: Engine
    ) -> list[dg.RunRequest]:
        """Return the runs that are needed now.

        A feed that cannot be looked at is reported, and stops no other.
        """
        assert context.repository_def is not None
        graph, instance = graph_of_repository(context.repository_def), context.instance
        fail_dead_runs(instance)
        # Before the catalog is asked: what a run that is over has committed is seen.
        busy = _busy_feeds(instance)
        engine = self._asked(engine, graph)
        one = _Look(
            context,
            settings,
            engine,
            graph,
            open_store(settings),
            self._locations,
            busy,
            datetime.now(UTC),
        )
        occupied = one.store.occupied(INBOXES)
        requests: list[dg.RunRequest] = []
        for feed_look in self._in_time():
            try:
                requests += one.at(feed_look, may_hold_files=feed_look.feed.name in occupied)
            except Exception as error:
                self._report(context, settings, feed_look.feed, error)
            else:
                self._resolve(context, settings, feed_look.feed)
        return requests

    def _in_time(self) -> Iterator[_FeedLook]:
        """Yield the feeds as long as a look may take, at least one of them."""
        until = time.monotonic() + _LOOK_SECONDS
        first, self._first, self._left = self._first, 0, 0
        ordered = [*self.feeds[first:], *self.feeds[:first]]
        for place, feed_look in enumerate(ordered):
            if place and time.monotonic() >= until:
                self._left = len(ordered) - place
                self._first = (first + place) % len(ordered)
                return
            yield feed_look

    def _asked(self, engine: Engine, graph: "AssetGraph") -> Engine:
        """Ask the catalog where it is time to, and return what looks at tables: as of then, or each
        as it is.
        """
        if time.monotonic() < self._locations_until:
            return engine
        moment = engine.catalog.at_one_moment(self.declared)
        tables = self._state_tables(graph)
        elsewhere = undeclared_locations(engine.catalog, tables, self.declared)
        self._locations = {**moment.metadata_locations(), **elsewhere}
        self._locations_until = time.monotonic() + _CATALOG_SECONDS
        return replace(engine, catalog=moment)

    def _state_tables(self, graph: "AssetGraph") -> set[str]:
        tables: set[str] = set()
        for feed_look in self.feeds:
            # Why it cannot be told is said where the feed is looked at.
            with suppress(Exception):
                tables.update(feed_look.state_tables(graph))
        return tables

    def describe(self) -> str:
        """Say why no run was asked for."""
        reasons = [f"{one.feed.name}: {one.reason}" for one in self.feeds if one.reason]
        if self._left:
            reasons.insert(0, f"{self._left} feeds are looked at by the next look.")
        if not reasons:
            return (
                f"Nothing waits in the inboxes of {len(self.feeds)} feeds, and no table has"
                " anything to compute."
            )
        more = len(reasons) - _NAMED_FEEDS
        told = reasons[:_NAMED_FEEDS] + ([f"and {more} feeds more"] if more > 0 else [])
        return "\n".join(told)

    def _report(
        self,
        context: dg.SensorEvaluationContext,
        settings: Settings,
        feed: Feed,
        error: Exception,
    ) -> None:
        cause = cause_without_data(error)
        context.log.error(f"Feed {feed.name} could not be looked at: {cause}")
        self.may_have_failed.add(feed.name)
        _is_noted(context, lambda: report_firing(settings, unlooked(feed, cause)))

    def _resolve(
        self, context: dg.SensorEvaluationContext, settings: Settings, feed: Feed
    ) -> None:
        if feed.name not in self.may_have_failed:
            return
        if _is_noted(context, lambda: resolve_looked(settings, feed)):
            self.may_have_failed.discard(feed.name)


def _is_noted(context: dg.SensorEvaluationContext, note: Callable[[], None]) -> bool:
    """Write a note for people; whether it could be written. Where it could not, such as on a full
    disk, runs are asked for all the same.
    """
    try:
        note()
    except Exception as error:
        context.log.error(f"No note could be written for people: {cause_without_data(error)}")
        return False
    return True


def _busy_feeds(instance: dg.DagsterInstance) -> dict[str, str]:
    """Return, by feed, the run of it that goes on."""
    busy = {}
    for record in instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED)):
        run = record.dagster_run
        if FEED_TAG in run.tags:
            busy[run.tags[FEED_TAG]] = run.run_id
    return busy


@dataclass(frozen=True)
class _Look:
    """One look at all feeds, with what was asked once for all of them."""

    context: dg.SensorEvaluationContext
    settings: Settings
    engine: Engine
    graph: "AssetGraph"
    store: ObjectStore
    locations: Mapping[str, str]
    busy: Mapping[str, str]
    now: datetime

    def at(self, looked: _FeedLook, *, may_hold_files: bool) -> list[dg.RunRequest]:
        """Return the runs that a feed needs now; none while a run of it goes on."""
        feed, looked.has_fresh = looked.feed, False
        if feed.name in self.busy:
            looked.reason = f"Run {self.busy[feed.name][:8]} goes on; one at a time."
            return []
        if may_hold_files:
            waiting = list_waiting_now(feed, self.store)
        else:
            waiting = Waiting(missing=self.store.missing(feed.inbox))
        if waiting != looked.waiting or self._is_report_due(looked, may_hold_files):
            looked.has_fresh = bool(waiting.unsettled)
            hidden = left_hidden_files(feed, self.store) if may_hold_files else ()
            not_taken = (*waiting.passed_over, *hidden)
            for warning in report_passed_over(self.settings, feed, not_taken):
                self.context.log.warning(warning)
            looked.has_hidden = bool(hidden)
            looked.waiting, looked.reported_at = waiting, self.now
        state = (
            waiting,
            [self.locations.get(table) for table in looked.state_tables(self.graph)],
            self.now.astimezone(feed.zone).date(),
        )
        if looked.settled_at == state:
            return []
        return self._requests(looked, waiting, state)

    def _is_report_due(self, looked: _FeedLook, may_hold_files: bool) -> bool:
        if not may_hold_files:
            return looked.has_hidden
        since = looked.reported_at
        return since is None or self.now - since >= _HIDDEN_EVERY

    def _requests(
        self, looked: _FeedLook, waiting: Waiting, state: object
    ) -> list[dg.RunRequest]:
        instance, graph, engine = self.context.instance, self.graph, self.engine
        decided = looked.requests.decide(instance, graph, engine, waiting, self.now)
        looked.settled_at = state if decided.is_settled else None
        is_told = waiting.missing or not decided.is_settled
        looked.reason = decided.reason if is_told else ""
        if not decided.runs:
            looked.requests.show_existing(instance, graph, engine)
        return make_requests(instance, graph, looked.feed, decided)
