"""What is open of a check, a table or a feed ends once that is no longer declared, and not
before.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from lakehouse.errors import LakehouseError
from lakehouse.monitoring.alert_log import read_alerts
from lakehouse.monitoring.alert_state import read_state, write_state
from lakehouse.monitoring.alerts_sensor import detect_and_dispatch
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Incident
from lakehouse_tests.monitoring.breaks import firing, reject
from lakehouse_tests.monitoring.watch import FEED, TABLE, Watch

CHECKS = [
    dg.AssetCheckSpec(name, asset=["silver", "fruits"])
    for name in ("castable_id", "length_fruit", "has_partition", "unique_fruit")
]


def says_of(
    watch: Watch,
    checks: Iterable[dg.AssetCheckSpec] = CHECKS,
    *,
    assets: Iterable[str] = ("silver.fruits",),
    declared: Mapping[str, Any] | None = None,
    feeds: Iterable[Any] = (FEED,),
) -> list[tuple[str, str]]:
    """Look at a project of some assets, checks and feeds, and return the titles of what was
    told, and how each was resolved.
    """

    @dg.multi_asset(
        name="computed",
        specs=[dg.AssetSpec(name.split("."), skippable=True) for name in assets],
        check_specs=[*checks],
        can_subset=True,
    )
    def computed():
        """What is declared now."""

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
def test_a_check_that_is_no_longer_declared_is_over(watch: Watch) -> None:
    watch.run("length_fruit", "unique_fruit", checks_alone=True)
    assert len(watch.look()) == 2
    for _ in range(3):
        # Then nothing is asked of checks until something happens.
        assert says_of(watch) == []
    assert says_of(watch, CHECKS[:3]) == [
        (
            "Resolved: silver.fruits: check unique_fruit failed",
            "The check is no longer declared.",
        )
    ]
    assert [*read_state(watch.settings).open] == ["check silver.fruits length_fruit"]


@pytest.mark.long
def test_a_table_whose_run_failed_is_over_once_it_is_no_longer_declared(watch: Watch) -> None:
    watch.error = LakehouseError("The disk is full.")
    watch.run()
    assert watch.says() == ["silver.fruits: the run failed"]
    assert says_of(watch) == []
    assert says_of(watch, [], assets=["silver.berries"]) == [
        ("Resolved: silver.fruits: the run failed", "The table is no longer declared.")
    ]


@pytest.mark.parametrize(
    ("key", "now", "removed"),
    [
        ("blocked silver.fruits", {"assets": ["silver.berries"]}, "table"),
        ("failed silver.fruits", {"assets": ["silver.berries"]}, "table"),
        ("failed feed fruits", {"feeds": ()}, "feed"),
        (
            "upkeep silver.fruits compact",
            {"assets": ["silver.berries"], "declared": {}},
            "table",
        ),
    ],
)
def test_what_is_open_is_over_once_its_table_or_feed_is_gone(
    watch: Watch, key: str, now: dict[str, Any], removed: str
) -> None:
    be_open(watch, key)
    assert says_of(watch) == []
    assert says_of(watch, [], **now) == [
        (f"Resolved: {key}", f"The {removed} is no longer declared.")
    ]
    assert read_state(watch.settings).open == {}


def test_upkeep_of_a_declared_table_that_no_asset_computes_stays_open(watch: Watch) -> None:
    be_open(watch, "upkeep silver.fruits compact")
    assert says_of(watch, [], assets=["silver.berries"]) == []


def test_rejected_files_of_a_feed_are_over_once_it_is_gone(watch: Watch) -> None:
    reject(watch, "short")
    (told,) = watch.says()
    assert says_of(watch) == []
    assert says_of(watch, feeds=()) == [
        (f"Resolved: {told}", "The feed is no longer declared.")
    ]
    assert says_of(watch, feeds=()) == []


def test_a_job_that_fails_is_of_no_table(watch: Watch) -> None:
    be_open(watch, "failed job export", table="")
    assert says_of(watch, [], assets=["silver.berries"], declared={}, feeds=()) == []


def be_open(watch: Watch, key: str, **parts: Any) -> None:
    """Let people have been told of an incident."""
    failed = replace(firing(0, key, kind=key.split()[0], **parts), at=datetime.now(UTC))
    incident = Incident.of(failed).after_alert(failed.at, is_muted=False)
    state = read_state(watch.settings)
    write_state(watch.settings, replace(state, open={**state.open, key: incident}))
