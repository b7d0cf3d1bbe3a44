"""Reads the content of the site from metadata, Dagster's storage and the `monitoring` tables;
starts no JVM.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import dagster as dg

from lakehouse.alerts.alert_state import read_state
from lakehouse.alerts.incidents import Incident
from lakehouse.alerts.table_states import TableStates
from lakehouse.contracts.odcs import contract_text
from lakehouse.errors import TableDamaged, TableNotFound, TableUnreadable, TypeUnsupported
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.snapshots import history_of
from lakehouse.iceberg.metadata.table_state import state_of
from lakehouse.iceberg.read.quarantined_rows import RefusedRows, count_refused
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.settings import Settings
from lakehouse.site.facts import SiteFacts, TableFacts
from lakehouse.site.read_checks import read_checks
from lakehouse.site.read_feeds import feed_warnings
from lakehouse.site.table_trends import Monitoring, TableTrend, read_trends, where_readable
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable
from lakehouse.upkeep.upkeep_records import PastUpkeep, UpkeepRecord, past_upkeep

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

_MOST_COUNTED_ROWS = 1_000_000
"""A larger quarantine is not read to count its rows by rule."""


@dataclass(frozen=True)
class SiteSource:
    """The project's part of the site: declarations, `monitoring` tables and the asset graph,
    which is read late since definitions contain the job that makes the site.
    """

    declared: Mapping[str, IcebergTable]
    feeds: Mapping[str, Feed]
    monitoring: Monitoring
    read_graph: "Callable[[], AssetGraph]"

    @cached_property
    def quarantined_table(self) -> Mapping[str, str]:
        """The table of each quarantine."""
        tables = self.declared.values()
        return {table.quarantine.name: table.name for table in tables if table.quarantine}


def read_site(
    source: SiteSource,
    settings: Settings,
    catalog: Catalog,
    instance: dg.DagsterInstance | None,
    now: datetime,
) -> SiteFacts:
    """Return the content of the site at a timestamp.

    :param instance: None before the first run.
    """
    graph, feeds = source.read_graph(), tuple(source.feeds.values())
    names = sorted({*catalog.tables(source.declared), *source.declared})
    read = {name: _read_table(catalog, name, source.declared.get(name)) for name in names}
    histories = {name: facts.history for name, facts in read.items() if facts.history}
    incidents = _read_incidents(settings)
    states = TableStates(graph, instance, source.declared, feeds, histories, incidents, now)
    conditions = states.conditions(names)
    checks = read_checks(graph, instance, source.declared)
    trends = read_trends(catalog, histories.values(), source.monitoring, now)
    upkeep = where_readable(lambda: past_upkeep(catalog, source.monitoring.upkeep, now))
    tables = {}
    for name, facts in read.items():
        trend = trends.get(name, TableTrend())
        shares = trend.failed_by_check
        tables[name] = replace(
            facts,
            condition=conditions[name],
            checks=tuple(
                replace(check, failed_shares=shares.get(check.name, ()))
                for check in checks.get(name, ())
            ),
            upkeep=_last_upkeep(upkeep or PastUpkeep(), name),
            trend=trend,
            **_read_declared(source, settings, graph, catalog, name),
        )
    return SiteFacts(
        settings.name or "Lakehouse",
        now,
        tables,
        feeds,
        feed_warnings(settings, feeds, instance),
        _sources_of(graph),
        tuple(one for one in incidents if one.firing.table not in tables),
        catalog.pyiceberg.get("uri", ""),
    )


def _sources_of(graph: "AssetGraph") -> dict[str, tuple[str, ...]]:
    sources = {}
    for key in graph.get_all_asset_keys():
        parents = map(table_name, graph.get(key).parent_keys - {key})
        sources[table_name(key)] = tuple(sorted(parents))
    return sources


def _read_declared(
    source: SiteSource,
    settings: Settings,
    graph: "AssetGraph",
    catalog: Catalog,
    name: str,
) -> dict[str, Any]:
    """Return the fields of a table that come from its asset, quarantine and contract."""
    fields: dict[str, Any] = {}
    if graph.has(asset_key(name)):
        asset = graph.get(asset_key(name))
        fields |= {"description": asset.description or "", "kinds": sorted(asset.kinds)}
    if name in source.quarantined_table:
        return fields | {"quarantine_of": source.quarantined_table[name]}
    if declared := source.declared.get(name):
        fields["contract"] = contract_text(declared, settings, source.feeds)
        if declared.quarantine:
            fields["quarantined"] = _read_quarantine(
                catalog, declared, declared.quarantine.name
            )
    return fields


def _read_table(catalog: Catalog, name: str, table: IcebergTable | None) -> TableFacts:
    try:
        loaded = catalog.load(name)
        return TableFacts(name, table, state_of(name, loaded), history_of(name, loaded))
    except TableNotFound:
        return TableFacts(name, table, exists=False)
    except TableDamaged as error:
        return TableFacts(name, table, damage=str(error))
    except TypeUnsupported as error:
        return TableFacts(name, table, unsupported=str(error))


def _read_quarantine(catalog: Catalog, table: IcebergTable, name: str) -> RefusedRows:
    try:
        main = history_of(name, catalog.load(name)).main
        if not main or main.rows > _MOST_COUNTED_ROWS:
            return RefusedRows(table.name, name, main.rows if main else 0)
        return count_refused(catalog, table)
    except (TableNotFound, TableUnreadable):
        # The page of the quarantine itself states the reason.
        return RefusedRows(table.name, name)


def _read_incidents(settings: Settings) -> list[Incident]:
    """Return the open incidents, oldest first, without erasures, which do not concern readers of
    tables, and without the names of rejected files.
    """
    shown = []
    for incident in read_state(settings).open.values():
        if incident.firing.kind == "rejected":
            firing = replace(incident.firing, title="A delivered file was rejected")
            incident = replace(incident, firing=firing)
        if incident.firing.kind != "erasure":
            shown.append(incident)
    return sorted(shown, key=lambda incident: (incident.opened_at, incident.firing.title))


def _last_upkeep(past: PastUpkeep, table: str) -> tuple[UpkeepRecord, ...]:
    """Return the last execution of each upkeep step that changed something or failed."""
    steps = []
    for step in get_args(StepName):
        executed = [record for record in past.of(table, step) if record.outcome != "skipped"]
        steps += executed[-1:]
    return tuple(steps)
