"""The state of each table, for `lakehouse status` and the site; starts no JVM."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import dagster as dg

from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.monitoring.incidents import Incident, Kind
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.blocked_tables import refused_tables, was_refused
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.orchestration.run_progress import tables_of_steps
from lakehouse.orchestration.runs_for_stale_tables import Downstream
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

State = Literal[
    "damaged", "blocked", "failed", "error", "late", "not read", "stale", "not there", "ok"
]
WORST_FIRST: tuple[State, ...] = get_args(State)
_OF_INCIDENTS: Mapping[Kind, State] = {
    "blocked": "blocked",
    "check": "failed",
    "failed": "failed",
    "overdue": "late",
}
"""The state that an open incident of severity error stands for; that of other kinds is `error`."""


@dataclass(frozen=True)
class Freshness:
    """How old a table may be and why, when it was last known to be fresh, and whether it is too
    old now.
    """

    allowed: timedelta
    reason: str
    fresh_at: datetime | None
    is_late: bool

    @property
    def due_at(self) -> datetime | None:
        """When the table becomes too old, unless it is written before."""
        return self.fresh_at + self.allowed if self.fresh_at else None


@dataclass(frozen=True)
class Condition:
    """What decides about the state of a table, apart from its metadata and its checks: the run
    that would block it again, its last run where that failed, and its open incidents.
    """

    is_stale: bool = False
    refused_by: str = ""
    failed_run: str = ""
    freshness: tuple[Freshness, ...] = ()
    incidents: tuple[Incident, ...] = ()

    def state(
        self, *, exists: bool, damage: str, unsupported: str, has_failed_checks: bool
    ) -> State:
        """Return the worst state of the table."""
        errors = (one.firing for one in self.incidents if one.firing.severity == "error")
        found: set[State] = {"ok", *(_OF_INCIDENTS.get(one.kind, "error") for one in errors)}
        holds: Mapping[State, object] = {
            "damaged": damage,
            "blocked": self.refused_by,
            "failed": self.failed_run or has_failed_checks,
            "late": any(freshness.is_late for freshness in self.freshness),
            "not read": unsupported,
            "stale": self.is_stale,
            "not there": not exists,
        }
        found.update(state for state, holds_now in holds.items() if holds_now)
        return min(found, key=WORST_FIRST.index)


@dataclass(frozen=True)
class TableStates:
    """Where the conditions of tables are read; `instance` is None before the first run."""

    graph: "AssetGraph"
    instance: dg.DagsterInstance | None
    declared: Mapping[str, IcebergTable]
    feeds: Iterable[Feed]
    histories: Mapping[str, History]
    incidents: Sequence[Incident]
    now: datetime

    def conditions(self, names: Iterable[str]) -> dict[str, Condition]:
        """Return the conditions of some tables by name."""
        blocked, failed = self._blocked(), self._failed()
        return {
            name: Condition(
                name in self._stale,
                blocked.get(name, ""),
                failed.get(name, ""),
                tuple(self._freshness(name)),
                tuple(one for one in self.incidents if one.firing.table == name),
            )
            for name in names
        }

    @cached_property
    def _stale(self) -> dict[str, dict[str, int | None]]:
        """The stale tables, and the snapshot that readers see of each of their sources."""
        stale: dict[str, dict[str, int | None]] = {}
        for name in map(table_name, self.graph.executable_asset_keys):
            sources = Downstream(self.graph, name).read_now(name)
            known = [self.histories[source] for source in sources if source in self.histories]
            if any(has_news(source, self.histories.get(name)) for source in known):
                mains = {one.table: one.main.snapshot_id for one in known if one.main}
                stale[name] = {source: mains.get(source) for source in sources}
        return stale

    def _blocked(self) -> dict[str, str]:
        """Return the stale tables that a run refused and would refuse again, with that run."""
        if self.instance is None:
            return {}
        read = {name: ids for name, ids in self._stale.items() if name in self.declared}
        return refused_tables(self.instance, self.declared, read)

    @cached_property
    def _records(self) -> "dict[str, dg.AssetRecord]":
        if self.instance is None:
            return {}
        records = self.instance.get_asset_records(list(self.graph.executable_asset_keys))
        return {table_name(record.asset_entry.asset_key): record for record in records}

    def _failed(self) -> dict[str, str]:
        """Return the tables whose last run failed at their own step, with that run.

        A table after one that failed was not computed, and is not failed itself.
        """
        last_runs: dict[str, set[str]] = {}
        for name, record in self._records.items():
            entry = record.asset_entry
            written = entry.last_materialization
            if entry.last_run_id and not (written and written.run_id == entry.last_run_id):
                last_runs.setdefault(entry.last_run_id, set()).add(name)
        if self.instance is None or not last_runs:
            return {}
        tables, failed = tables_of_steps(self.graph), {}
        runs = dg.RunsFilter(list(last_runs), statuses=[dg.DagsterRunStatus.FAILURE])
        for record in self.instance.get_run_records(runs):
            run = record.dagster_run
            events = events_of_run(self.instance, run.run_id, dg.DagsterEventType.STEP_FAILURE)
            steps = {tables.get(event.step_key or "") for event in events}
            # A killed run has no failed step.
            names = last_runs[run.run_id] & steps if steps else last_runs[run.run_id]
            if not was_refused(run.tags):
                failed.update(dict.fromkeys(names, run.run_id))
        return failed

    def _freshness(self, name: str) -> list[Freshness]:
        """Return how old a table may be, by its own declaration and by that of its feeds."""
        history, table = self.histories.get(name), self.declared.get(name)
        written = history.written_at if history else None
        limits = []
        if table is not None and table.freshness:
            record = self._records.get(name)
            event = record.asset_entry.last_materialization if record else None
            checked = datetime.fromtimestamp(event.timestamp, UTC) if event else None
            fresh_at = max(written, checked) if written and checked else written
            limits.append((table.freshness, "declared of the table", fresh_at))
        for feed in self.feeds:
            if feed.table == name and feed.expected_within:
                reason = f"the next delivery of feed {feed.name}"
                limits.append((feed.expected_within, reason, written))
        return [
            Freshness(
                allowed, reason, fresh_at, bool(fresh_at and self.now - fresh_at > allowed)
            )
            for allowed, reason, fresh_at in limits
        ]
