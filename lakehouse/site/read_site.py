"""Reads the content of the site from metadata and Dagster's storage; starts no JVM."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.alerts.alert_state import read_state
from lakehouse.alerts.incidents import Incident
from lakehouse.alerts.table_states import TableStates
from lakehouse.contracts.odcs import contract_text
from lakehouse.errors import TableDamaged, TableNotFound, TableUnreadable, TypeUnsupported
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.snapshots import history_of
from lakehouse.iceberg.metadata.table_state import state_of
from lakehouse.iceberg.read.quarantined_rows import QuarantinedRows, count_quarantined
from lakehouse.orchestration.asset_checks import is_of_quarantine
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.dagster_internals import check_summaries
from lakehouse.orchestration.metadata_keys import CheckMetadata, plain_values
from lakehouse.settings import Settings
from lakehouse.site.facts import FEED, CheckFacts, Outcome, SiteFacts, TableFacts
from lakehouse.site.read_feeds import feed_warnings
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

_MOST_COUNTED_ROWS = 1_000_000
"""A larger quarantine is not read to count its rows by rule."""


@dataclass(frozen=True)
class SiteSource:
    """The project's part of the site: declarations and the asset graph, which is read late since
    definitions contain the job that makes the site.
    """

    declared: Mapping[str, IcebergTable]
    feeds: Mapping[str, Feed]
    read_graph: "Callable[[], AssetGraph]"


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
    incidents = _read_incidents(settings)
    read = read_tables(source, names, catalog, instance, incidents, now)
    declared = source.declared.values()
    quarantined = {one.quarantine.name: one.name for one in declared if one.quarantine}
    tables = {}
    for name, facts in read.items():
        asset = graph.get(asset_key(name)) if graph.has(asset_key(name)) else None
        contract, rows = "", None
        if facts.declared and name not in quarantined:
            contract = contract_text(facts.declared, settings, source.feeds)
            rows = _read_quarantine(catalog, facts.declared)
        tables[name] = replace(
            facts,
            description=(asset and asset.description) or "",
            kinds=sorted(asset.kinds) if asset else (),
            contract=contract,
            quarantine_of=quarantined.get(name, ""),
            quarantined=rows,
        )
    return SiteFacts(
        settings.name or "Lakehouse",
        now,
        tables,
        feeds,
        feed_warnings(settings, feeds, instance),
        _sources_of(graph, feeds),
        tuple(one for one in incidents if one.firing.table not in tables),
        catalog.pyiceberg.get("uri", ""),
    )


def read_tables(
    source: SiteSource,
    names: Iterable[str],
    catalog: Catalog,
    instance: dg.DagsterInstance | None,
    incidents: Sequence[Incident],
    now: datetime,
) -> dict[str, TableFacts]:
    """Return the metadata, the condition and the checks of tables by name."""
    declared, graph, feeds = source.declared, source.read_graph(), source.feeds.values()
    read = {name: _read_table(catalog, name, declared.get(name)) for name in names}
    histories = {name: facts.history for name, facts in read.items() if facts.history}
    states = TableStates(graph, instance, declared, feeds, histories, incidents, now)
    conditions, checks = states.conditions(read), _read_checks(graph, instance, declared)
    return {
        name: replace(facts, condition=conditions[name], checks=tuple(checks.get(name, ())))
        for name, facts in read.items()
    }


def _sources_of(graph: "AssetGraph", feeds: Iterable[Feed]) -> dict[str, set[str]]:
    sources = {}
    for key in graph.get_all_asset_keys():
        sources[table_name(key)] = set(map(table_name, graph.get(key).parent_keys - {key}))
    for feed in feeds:
        sources.setdefault(feed.table, set()).add(f"{FEED}{feed.name}")
    return sources


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


def _read_quarantine(catalog: Catalog, table: IcebergTable) -> QuarantinedRows | None:
    if table.quarantine is None:
        return None
    name = table.quarantine.name
    try:
        main = history_of(name, catalog.load(name)).main
        if not main or main.rows > _MOST_COUNTED_ROWS:
            return QuarantinedRows(table.name, name, main.rows if main else 0)
        return count_quarantined(catalog, table)
    except (TableNotFound, TableUnreadable):
        # The page of the quarantine itself states the reason.
        return QuarantinedRows(table.name, name)


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


def _read_checks(
    graph: "AssetGraph",
    instance: dg.DagsterInstance | None,
    declared: Mapping[str, IcebergTable],
) -> dict[str, list[CheckFacts]]:
    """Return the checks and their last results by table, sorted by name, without failing rows.

    :param instance: None before the first run.
    """
    keys = sorted(graph.asset_check_keys)
    summaries = check_summaries(instance, keys) if instance else {}
    checks: dict[str, list[CheckFacts]] = {}
    for key in keys:
        spec, table = graph.get_check_spec(key), table_name(key.asset_key)
        summary = summaries.get(key)
        last = summary.last_completed_check_execution_record if summary else None
        evaluation = last.evaluation if last else None
        counts = CheckMetadata.from_metadata(evaluation.metadata if evaluation else {})
        outcome: Outcome = "failed" if last else "not run"
        if last and evaluation:
            outcome = _outcome(declared.get(table), evaluation, last.run_id)
        check = CheckFacts(
            key.name,
            spec.description or "",
            str(plain_values(spec.metadata).get("on_failure", "")),
            outcome,
            datetime.fromtimestamp(last.create_timestamp, UTC) if last else None,
            counts.failed_rows,
            counts.total_rows,
            counts.value,
        )
        checks.setdefault(table, []).append(check)
    return checks


def _outcome(
    table: IcebergTable | None, evaluation: dg.AssetCheckEvaluation, run_id: str
) -> Outcome:
    if evaluation.passed:
        return "passed"
    if is_of_quarantine(table, evaluation, run_id):
        # The published rows pass; the failing ones are in the quarantine.
        return "quarantined"
    return "warned" if evaluation.severity == dg.AssetCheckSeverity.WARN else "failed"
