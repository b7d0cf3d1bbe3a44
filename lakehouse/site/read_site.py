"""All that the site tells, read in one go: metadata, Dagster's storage, and the tables of
`monitoring`; starts no JVM.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, get_args

import dagster as dg

from lakehouse.alerts.alert_state import read_state
from lakehouse.alerts.table_states import Condition, TableStates
from lakehouse.contracts.odcs import contract_text
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.settings import Settings
from lakehouse.site.facts import (
    FeedFacts,
    IncidentFacts,
    SiteFacts,
    TableFacts,
    UpkeepFacts,
)
from lakehouse.site.read_checks import read_checks, with_shares
from lakehouse.site.read_feeds import feed_warnings
from lakehouse.site.read_incidents import read_incidents
from lakehouse.site.read_table import ReadTable, read_quarantine, read_table
from lakehouse.site.table_trends import (
    Monitoring,
    TableTrend,
    read_trends,
    where_readable,
)
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable
from lakehouse.upkeep.upkeep_records import PastUpkeep, past_upkeep

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph


@dataclass(frozen=True)
class SiteSource:
    """What there is to tell of: the declared tables and feeds, who computes them, and the
    names of the tables that the past is kept in.

    `read_graph` is called when the site is made, since definitions name what makes it.
    """

    declared: Mapping[str, IcebergTable]
    feeds: Mapping[str, Feed]
    monitoring: Monitoring
    read_graph: "Callable[[], AssetGraph]"


def read_site(
    source: SiteSource,
    settings: Settings,
    catalog: Catalog,
    instance: dg.DagsterInstance | None,
    now: datetime,
) -> SiteFacts:
    """Return what the site tells as of a moment.

    :param instance: Dagster's; None before the first run.
    """
    graph = source.read_graph()
    names = sorted({*catalog.tables(source.declared), *source.declared})
    read = {name: read_table(catalog, name, source.declared.get(name)) for name in names}
    histories = {name: one.history for name, one in read.items() if one.history}
    about = _About(source, settings, graph, catalog, instance, now, histories)
    incidents = read_incidents(settings)
    tables = about.tables(read, incidents)
    warnings = feed_warnings(settings, source.feeds.values(), instance)
    return SiteFacts(
        settings.name or "Lakehouse",
        now,
        tables,
        tuple(_feed(feed, warnings[feed.name]) for feed in source.feeds.values()),
        sources_of(graph),
        tuple(incident for incident in incidents if incident.table not in read),
        catalog.pyiceberg.get("uri", ""),
    )


def sources_of(graph: "AssetGraph") -> dict[str, tuple[str, ...]]:
    """Return, by table, those that it is computed from, or filled by; not the table itself."""
    sources = {}
    for key in graph.get_all_asset_keys():
        parents = map(table_name, graph.get(key).parent_keys - {key})
        sources[table_name(key)] = tuple(sorted(parents))
    return sources


@dataclass(frozen=True)
class _About:
    """What tables are beside their own metadata."""

    source: SiteSource
    settings: Settings
    graph: "AssetGraph"
    catalog: Catalog
    instance: dg.DagsterInstance | None
    now: datetime
    histories: Mapping[str, History]

    def tables(
        self, read: Mapping[str, ReadTable], incidents: Sequence[IncidentFacts]
    ) -> tuple[TableFacts, ...]:
        """Return all that is told of each table."""
        monitoring = self.source.monitoring
        checks = read_checks(self.graph, self.instance, self.source.declared)
        trends = read_trends(self.catalog, self.histories.values(), monitoring, self.now)
        upkeep = where_readable(lambda: past_upkeep(self.catalog, monitoring.upkeep, self.now))
        conditions = self._conditions(read)
        tables = []
        for name, one in read.items():
            trend = trends.get(name, TableTrend())
            facts = replace(
                one.facts,
                description=self._description(name),
                kinds=self._kinds(name),
                contract=self._contract(name),
                condition=conditions[name],
                checks=with_shares(checks.get(name, ()), trend.failed_by_check),
                incidents=tuple(found for found in incidents if found.table == name),
                upkeep=_upkeep(upkeep or PastUpkeep(), name),
                trend=trend,
            )
            tables.append(self._with_quarantine(facts))
        return tuple(tables)

    def _conditions(self, names: Iterable[str]) -> Mapping[str, Condition]:
        source, incidents = self.source, tuple(read_state(self.settings).open.values())
        states = TableStates(
            self.graph,
            self.instance,
            source.declared,
            source.feeds.values(),
            self.histories,
            incidents,
            self.now,
        )
        return states.conditions(names)

    def _is_known(self, name: str) -> bool:
        return self.graph.has(asset_key(name))

    def _description(self, name: str) -> str:
        if not self._is_known(name):
            return ""
        return self.graph.get(asset_key(name)).description or ""

    def _kinds(self, name: str) -> tuple[str, ...]:
        return (
            tuple(sorted(self.graph.get(asset_key(name)).kinds)) if self._is_known(name) else ()
        )

    def _contract(self, name: str) -> str:
        table = self.source.declared.get(name)
        if table is None or name in self._quarantines:
            return ""
        return contract_text(table, self.settings, self.source.feeds)

    def _with_quarantine(self, facts: TableFacts) -> TableFacts:
        table = self.source.declared.get(facts.name)
        quarantine = read_quarantine(self.catalog, table) if table else None
        return replace(
            facts, quarantine=quarantine, quarantine_of=self._quarantines.get(facts.name, "")
        )

    @cached_property
    def _quarantines(self) -> dict[str, str]:
        return {
            table.quarantine.name: name
            for name, table in self.source.declared.items()
            if table.quarantine
        }


def _feed(feed: Feed, warnings: tuple[str, ...]) -> FeedFacts:
    return FeedFacts(
        feed.name,
        feed.table,
        tuple(feed.formats),
        feed.time_zone,
        feed.expected_within,
        warnings,
    )


def _upkeep(past: PastUpkeep, table: str) -> tuple[UpkeepFacts, ...]:
    """Return what came of each step of upkeep of a table when it last did anything, or
    failed.
    """
    steps = []
    for step in get_args(StepName):
        tried = [record for record in past.of(table, step) if record.outcome != "skipped"]
        if tried:
            last = tried[-1]
            steps.append(
                UpkeepFacts(
                    step,
                    last.outcome,
                    last.ended_at,
                    last.fewer_files,
                    last.cost_bytes,
                    last.reason,
                )
            )
    return tuple(steps)
