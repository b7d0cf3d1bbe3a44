"""Incidents of checks, tables and feeds that are no longer declared are resolved."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from lakehouse.alerts.alert_state import read_state, write_state
from lakehouse.alerts.alerts_sensor import detect_and_dispatch
from lakehouse.alerts.incidents import Incident
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.sinks import read_alerts
from lakehouse_tests.alerts.facts import firing, reject
from lakehouse_tests.alerts.watch import FEED, TABLE, Watch

CHECKS = [
    dg.AssetCheckSpec(name, asset=["silver", "fruits"])
    for name in ("castable_id", "length_fruit", "has_partition", "unique_fruit")
]


def titles_of(
    watch: Watch,
    checks: Iterable[dg.AssetCheckSpec] = CHECKS,
    *,
    assets: Iterable[str] = ("silver.fruits",),
    declared: Mapping[str, Any] | None = None,
    feeds: Iterable[Any] = (FEED,),
) -> list[tuple[str, str]]:
    """Run a round with other declarations; return the titles and first lines of messages."""

    @dg.multi_asset(
        name="computed",
        specs=[dg.AssetSpec(name.split("."), skippable=True) for name in assets],
        check_specs=[*checks],
        can_subset=True,
    )
    def computed():
        """The declared assets."""

    context = MonitorContext(
        watch.instance,
        dg.Definitions([computed]).resolve_asset_graph(),
        {TABLE.name: TABLE} if declared is None else declared,
        tuple(feeds),
        watch.settings,
        datetime.now(UTC),
    )
    before = len(read_alerts(watch.settings))
    detect_and_dispatch(context, logging.getLogger("lakehouse.alerts"))
    return [(alert.title, alert.lines[0]) for alert in read_alerts(watch.settings)[before:]]


@pytest.mark.long
def test_a_removed_check_is_resolved(watch: Watch) -> None:
    watch.run("length_fruit", "unique_fruit", only_checks=True)
    assert len(watch.round()) == 2
    assert titles_of(watch) == []
    assert titles_of(watch, CHECKS[:3]) == [
        (
            "Resolved: silver.fruits: check unique_fruit failed",
            "It is no longer declared.",
        )
    ]
    assert [*read_state(watch.settings).open] == ["check silver.fruits length_fruit"]


@pytest.mark.parametrize(
    ("key", "now"),
    [
        ("blocked silver.fruits", {"assets": ["silver.berries"]}),
        ("failed silver.fruits", {"assets": ["silver.berries"]}),
        ("failed feed fruits", {"feeds": ()}),
        ("upkeep silver.fruits compact", {"assets": ["silver.berries"], "declared": {}}),
    ],
)
def test_incidents_of_a_removed_table_or_feed_are_resolved(
    watch: Watch, key: str, now: dict[str, Any]
) -> None:
    open_incident(watch, key)
    assert titles_of(watch) == []
    assert titles_of(watch, [], **now) == [(f"Resolved: {key}", "It is no longer declared.")]
    assert read_state(watch.settings).open == {}


def test_rows_in_quarantine_of_a_removed_table_are_resolved(watch: Watch) -> None:
    open_incident(watch, "quarantined silver.fruits")
    assert titles_of(watch, [], assets=["silver.berries"], declared={}) == [
        ("Resolved: quarantined silver.fruits", "It is no longer declared.")
    ]


def test_rejected_files_of_a_removed_feed_are_resolved(watch: Watch) -> None:
    reject(watch, "short")
    (title,) = watch.titles()
    assert titles_of(watch) == []
    assert titles_of(watch, feeds=()) == [(f"Resolved: {title}", "It no longer fires.")]
    assert titles_of(watch, feeds=()) == []


def test_a_failed_job_without_a_table_stays_open(watch: Watch) -> None:
    open_incident(watch, "failed job export", table="")
    assert titles_of(watch, [], assets=["silver.berries"], declared={}, feeds=()) == []


def open_incident(watch: Watch, key: str, **parts: Any) -> None:
    """Open an incident that was sent."""
    failed = replace(firing(0, key, kind=key.split()[0], **parts), at=datetime.now(UTC))
    incident = Incident.of(failed).after_alert(failed.at, is_muted=False)
    state = read_state(watch.settings)
    write_state(watch.settings, replace(state, open={**state.open, key: incident}))
