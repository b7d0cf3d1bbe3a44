"""Which incidents are open of a table, as the page of the table in Dagster's UI shows them."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import dagster as dg

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import OpenAlertsMetadata

CURSOR = "shown_with_tables"


def show_open_alerts(
    instance: dg.DagsterInstance, declared: Collection[str], state: AlertState
) -> AlertState:
    """Observe the tables of which other incidents are open than were last shown, and return the
    state that knows what is shown now; the same where nothing changed.

    Interrupted in between, a later round shows it once more.

    :param declared: names of the tables that Dagster knows.
    """
    titles: dict[str, list[str]] = {}
    for incident in state.open.values():
        if incident.firing.table in declared:
            titles.setdefault(incident.firing.table, []).append(incident.firing.title)
    now = {table: sorted(found) for table, found in titles.items()}
    shown = state.cursors.get(CURSOR, {})
    changed = {table for table in {*now, *shown} if now.get(table) != shown.get(table)}
    for table in sorted(changed & {*declared}):
        instance.report_runless_asset_event(_observation(table, now.get(table, ())))
    if not changed:
        return state
    return replace(state, cursors={**state.cursors, CURSOR: now})


def _observation(table: str, titles: Sequence[str]) -> dg.AssetObservation:
    metadata = OpenAlertsMetadata(count=len(titles), titles=tuple(titles)).to_metadata()
    return dg.AssetObservation(asset_key(table), metadata=metadata)
