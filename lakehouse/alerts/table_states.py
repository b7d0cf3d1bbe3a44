"""The state of each table, for `lakehouse status` and the site; starts no JVM."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import dagster as dg

from lakehouse.alerts.incidents import Incident, Kind
from lakehouse.alerts.overdue_tables import Freshness, freshness_of
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.blocked_tables import find_blocked_tables, was_blocked
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.orchestration.runs.run_progress import tables_of_steps
from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

State = Literal[
    "damaged", "blocked", "failed", "error", "late", "not read", "stale", "not there", "ok"
]
WORST_FIRST: tuple[State, ...] = get_args(State)
_STATES: Mapping[Kind, State] = {
    "blocked": "blocked",
    "check": "failed",
    "failed": "failed",
    "overdue": "late",
}
"""The state of a table with an open error of this kind; other kinds are `error`."""


@dataclass(frozen=True)
class Condition:
    """The inputs of a table's state besides its metadata and checks."""

    is_stale: bool = False
    blocked_by: str = ""
    failed_run: str = ""
    freshness: tuple[Freshness, ...] = ()
    incidents: tuple[Incident, ...] = ()

    def state(
        self, *, exists: bool, damage: str, unsupported: str, has_failed_checks: bool
    ) -> State:
        """Return the worst state of the table."""
        errors = (one.firing for one in self.incidents if one.firing.severity == "error")
        states: set[State] = {"ok", *(_STATES.get(one.kind, "error") for one in errors)}
        conditions: Mapping[State, object] = {
            "damaged": damage,
            "blocked": self.blocked_by,
            "failed": self.failed_run or has_failed_checks,
            "late": any(freshness.is_late for freshness in self.freshness),
            "not read": unsupported,
            "stale": self.is_stale,
            "not there": not exists,
        }
        states.update(state for state, is_so in conditions.items() if is_so)
        return min(states, key=WORST_FIRST.index)


@dataclass(frozen=True)
class TableStates:
    """Reads the conditions of tables; `instance` is None before the first run."""

    graph: "AssetGraph"
    instance: dg.DagsterInstance | None
    declared: Mapping[str, IcebergTable]
    feeds: Iterable[Feed]
    histories: Mapping[str, History]
    incidents: Sequence[Incident]
    now: datetime

    def conditions(self, names: Iterable[str]) -> dict[str, Condition]:
        """Return the conditions of tables by name."""
        failed = self._failed()
        # The stale tables that a run blocked and would block again, with that run.
        blocked: Mapping[str, str] = {}
        if self.instance is not None:
            read = {name: ids for name, ids in self._stale.items() if name in self.declared}
            blocked = find_blocked_tables(self.instance, self.declared, read)
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
        """The stale tables, and the current snapshot of each of their sources."""
        stale: dict[str, dict[str, int | None]] = {}
        for name in map(table_name, self.graph.executable_asset_keys):
            sources = Downstream(self.graph, name).read_now(name)
            known = [self.histories[source] for source in sources if source in self.histories]
            if any(has_news(source, self.histories.get(name)) for source in known):
                mains = {one.table: one.main.snapshot_id for one in known if one.main}
                stale[name] = {source: mains.get(source) for source in sources}
        return stale

    @cached_property
    def _records(self) -> "dict[str, dg.AssetRecord]":
        if self.instance is None:
            return {}
        records = self.instance.get_asset_records(list(self.graph.executable_asset_keys))
        return {table_name(record.asset_entry.asset_key): record for record in records}

    def _failed(self) -> dict[str, str]:
        """Return the tables whose own step failed in their last run, with that run."""
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
            if not was_blocked(run.tags):
                failed.update(dict.fromkeys(names, run.run_id))
        return failed

    def _freshness(self, name: str) -> Iterator[Freshness]:
        history, record = self.histories.get(name), self._records.get(name)
        event = record.asset_entry.last_materialization if record else None
        checked = datetime.fromtimestamp(event.timestamp, UTC) if event else None
        times = (history.written_at if history else None, checked)
        return freshness_of(name, self.declared.get(name), self.feeds, times, self.now)
