"""Alerts without a person: each file is read by its own reader afterwards, and is written under
the lock of who writes it.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.alerts.alert_plan import plan_alerts
from lakehouse.alerts.alert_routes import Route, Routes
from lakehouse.alerts.alert_state import AlertState, read_state, state_lock, write_state
from lakehouse.alerts.dispatch import route_alerts
from lakehouse.alerts.incidents import Firing, Observed
from lakehouse.alerts.mutes import Mute
from lakehouse.alerts.sinks import read_alerts, record_of
from lakehouse.orchestration.incident_reports import Report, read_reports, report_firing
from lakehouse.privacy.places import mask_files as scrubbing
from lakehouse.privacy.places.mask_files import scrub_places
from lakehouse.settings import Settings
from lakehouse_tests.privacy.places.a_person import EMAIL, PERSON, traces

pytestmark = pytest.mark.unit

NOW = datetime.now(UTC)
MASKED = "[erased]".ljust(len(EMAIL.encode()), "*")


def alert(settings: Settings) -> None:
    """Open an incident that shows the person: recorded, and on its way to a webhook."""
    seen = Firing(
        "check silver.orders valid",
        "check",
        NOW,
        "error",
        "silver.orders: check valid failed",
        lines=(f"Row: email={EMAIL}, customer_id=7, rows=7",),
        commands=(f"lakehouse sql \"SELECT '{EMAIL}'\"",),
        table="silver.orders",
    )
    muted = Mute("silver.none", NOW + timedelta(1), "ben", f"ask {EMAIL}", NOW)
    state = AlertState(cursors={"round_at": "before"}, mutes={muted.table: muted})
    plan = plan_alerts(state, Observed((seen,)), NOW, timedelta(1))
    routes = Routes(route=(Route(to=("json://127.0.0.1:1/",)),))
    state = route_alerts(replace(state, open=plan.open), plan.alerts, routes)
    write_state(settings, state)
    for message in plan.alerts:
        record_of(settings).send(message)


@pytest.fixture
def alerted(settings: Settings) -> Settings:
    settings.make_home()
    alert(settings)
    report_firing(settings, Report("inbox orders/x", "A link", lines=(f"orders/{EMAIL}.csv",)))
    return settings


def scrub(settings: Settings, *, is_dry: bool = False) -> dict[str, tuple[str, int]]:
    places = scrub_places(settings, [PERSON], is_dry=is_dry)
    return {
        place.place: (place.outcome, place.values)
        for place in places
        if place.place.startswith("alerts") and place.outcome != "not reached"
    }


def test_no_byte_is_left_and_each_file_is_read_as_before(alerted):
    assert len(traces(alerted.home)) == 3

    done = scrub(alerted)

    assert {outcome for outcome, _ in done.values()} == {"erased"}
    assert traces(alerted.home) == []
    (incident,) = read_state(alerted).open.values()
    (line,) = incident.firing.lines
    assert line.startswith("Row: email=[erased]*") and line.endswith("customer_id=*, rows=7")
    assert read_state(alerted).undelivered == 1
    (recorded,) = read_alerts(alerted)
    assert recorded.title == "silver.orders: check valid failed"
    assert "customer_id=*, rows=7" in " ".join(recorded.lines)
    assert [mute.why for mute in read_state(alerted).mutes.values()] == [f"ask {MASKED}"]
    assert [note.report.lines for note in read_reports(alerted)] == [(f"orders/{MASKED}.csv",)]


def test_a_round_of_monitoring_is_waited_for_and_then_left_to_the_next_call(
    alerted, monkeypatch
):
    monkeypatch.setattr(scrubbing, "_WAIT_SECONDS", 0.1)
    with state_lock(alerted, 1):
        done = scrub(alerted)

    busy = {place for place, (outcome, _) in done.items() if outcome == "busy"}
    assert busy == {"alerts.jsonl", "alerts/incidents.json", "alerts/reports.json"}
    assert set(scrub(alerted)) == busy
    assert traces(alerted.home) == []
