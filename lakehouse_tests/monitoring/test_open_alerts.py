"""What is open of a table, as Dagster is told when it changes."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.incidents import Firing, Incident
from lakehouse.monitoring.open_alerts import show_open_alerts
from lakehouse.orchestration.metadata_keys import plain_values

pytestmark = pytest.mark.unit

FRUITS = dg.AssetKey(["silver", "fruits"])
DECLARED = ("silver.fruits", "gold.sums")
NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def state_of(*titles: str, table: str = "silver.fruits") -> AlertState:
    """A state in which incidents of these titles are open of a table."""
    firings = (Firing(title, "check", NOON, "error", title, table=table) for title in titles)
    return AlertState(open={firing.key: Incident.of(firing) for firing in firings})


def shown(instance: dg.DagsterInstance) -> list[dict[str, Any]]:
    """What the page of the table was told, the newest first."""
    records = instance.fetch_observations(FRUITS, limit=10).records
    return [
        plain_values(record.asset_observation.metadata)
        for record in records
        if record.asset_observation
    ]


def test_what_opens_and_what_is_over_is_shown_once(instance: dg.DagsterInstance) -> None:
    state = show_open_alerts(instance, DECLARED, state_of("late", "broken"))
    assert show_open_alerts(instance, DECLARED, state) is state
    state = show_open_alerts(instance, DECLARED, replace(state, open={}))
    assert show_open_alerts(instance, DECLARED, state) is state
    assert shown(instance) == [
        {"open_alerts": 0},
        {"open_alerts": 2, "open_alert_titles": ["broken", "late"]},
    ]


def test_nothing_is_shown_of_a_table_that_dagster_does_not_know(
    instance: dg.DagsterInstance,
) -> None:
    state = state_of("late", table="silver.gone")
    assert show_open_alerts(instance, DECLARED, state) is state
