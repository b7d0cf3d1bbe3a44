"""`lakehouse alerts` and `lakehouse mute` on recorded alerts."""

import logging
from datetime import UTC, datetime

import dagster as dg
import pytest

from lakehouse.alerts.alert_state import read_state, write_state
from lakehouse.alerts.alerts_sensor import detect_and_dispatch
from lakehouse.alerts.incidents import Alert, Firing, Observed
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.sinks import read_alerts
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings
from lakehouse_tests.alerts.receiver import receiving
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records

pytestmark = pytest.mark.unit

MANY = 25


@pytest.fixture
def recorded(settings: Settings) -> list[Alert]:
    """Record one alert for each of many failures."""
    now = datetime.now(UTC)
    facts = tuple(
        Firing(f"reported {number:02}", "reported", now, "error", f"failure {number:02}")
        for number in range(MANY)
    )
    with open_instance(settings) as instance:
        graph = asset_graph(dg.Definitions())
        context = MonitorContext(instance, graph, {}, (), settings, now)
        detectors = {"facts": lambda _: Observed(facts)}
        detect_and_dispatch(context, logging.getLogger("lakehouse.alerts"), detectors)
    return read_alerts(settings)


@pytest.mark.usefixtures("recorded")
def test_json_lists_all_alerts(lakehouse: Lakehouse) -> None:
    assert len(records(lakehouse("alerts", "--format", "json"))) == MANY
    assert len(records(lakehouse("alerts", "--open", "--format", "json"))) == MANY
    assert len(records(lakehouse("alerts", "--last", "3", "--format", "json"))) == 3


@pytest.mark.usefixtures("recorded")
def test_a_table_lists_the_last_alerts(lakehouse: Lakehouse) -> None:
    for ran in (lakehouse("alerts"), lakehouse("alerts", "--open")):
        assert ran.out[-1] == "(20 of 25 alerts, --last 25 lists all; 25 incidents open)"
    assert lakehouse("alerts", "--last", "25").out[-1] == "(25 alerts; 25 incidents open)"


def test_before_the_first_round_nothing_was_monitored(lakehouse: Lakehouse) -> None:
    assert lakehouse("alerts").out[-1] == "Nothing was monitored yet; `lakehouse dev` does."


def test_one_alert_is_shown_as_json(lakehouse, recorded, settings):
    record = records(lakehouse("alerts", recorded[0].alert_id, "--format", "json"))
    assert record == {**recorded[0].to_json(), "is_open": True}
    assert record["lakehouse"] == settings.title


def test_one_alert_is_shown_as_text(lakehouse: Lakehouse, recorded: list[Alert]) -> None:
    ran = lakehouse("alerts", recorded[0].alert_id)
    assert (ran.code, ran.out[0]) == (0, "failure 00")
    assert ran.out[1].endswith(" error, opened; open now")


def test_an_unknown_id_is_a_usage_error(lakehouse: Lakehouse) -> None:
    assert lakehouse("alerts", "zzzz").code == 2


def test_an_acknowledged_incident_stays_open_with_a_reason(lakehouse, recorded, settings):
    ran = lakehouse("alerts", "ack", recorded[0].alert_id, "--why", "known", "--by", "ben")
    assert ran.code == 0
    assert read_state(settings).open[recorded[0].key].acknowledged == "ben: known"


def test_a_closed_incident_is_resolved(lakehouse, recorded, settings):
    ran = lakehouse("alerts", "close", recorded[0].alert_id, "--why", "known", "--by", "ben")
    assert ran.code == 0
    assert recorded[0].key not in read_state(settings).open
    last = read_alerts(settings)[-1]
    assert (last.title, last.lines[0]) == ("Resolved: failure 00", "Closed by ben: known")


def test_an_incident_that_opens_again_is_not_listed_as_resolved(lakehouse, recorded, settings):
    state = read_state(settings)
    lakehouse("alerts", "close", recorded[0].alert_id, "--why", "known")
    write_state(settings, state)
    listed = records(lakehouse("alerts", "--open", "--format", "json"))
    assert (len(listed), {alert["saying"] for alert in listed}) == (MANY - 1, {"opened"})


def test_a_closed_incident_cannot_be_acknowledged(lakehouse, recorded):
    lakehouse("alerts", "close", recorded[0].alert_id, "--why", "known")
    ran = lakehouse("alerts", "ack", recorded[0].alert_id, "--why", "too late")
    assert (ran.code, "is not open" in ran.err[0]) == (2, True)


def test_a_test_message_is_sent_to_every_recipient(lakehouse, monkeypatch):
    with receiving() as receiver:
        monkeypatch.setenv("LAKEHOUSE_ALERT_URLS", f"{receiver.url} json://127.0.0.1:1/")
        ran = lakehouse("alerts", "test")
        assert receiver.titles == ["Test of the lakehouse's alerts"]
    assert ran.code == 1
    assert [line.split()[0] for line in ran.out] == ["ok", "ok", "ok", "FAIL"]
    assert "1 recipient did not receive the message: json-" in ran.err[-1]


def test_a_mute_is_listed_until_it_ends(lakehouse: Lakehouse) -> None:
    lakehouse("mute", "silver.fruits", "--until", "2999-12-01T08:00+08:00", "--by", "ben")
    assert (
        lakehouse("alerts")
        .out[-1]
        .startswith("silver.fruits is muted until 2999-12-01 00:00:00Z by ben, since 20")
    )
    lakehouse("mute", "silver.fruits", "--off")
    assert "muted" not in lakehouse("alerts").out[-1]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("silver.fruits", "--until", "tomorrow"), "expected a time to come"),
        (("silver.nothing", "--off"), "'silver.nothing' is not a declared table"),
        (("nothing.*", "--off"), "is the pattern of no table"),
    ],
)
def test_a_wrong_mute_is_explained(lakehouse, arguments, part):
    ran = lakehouse("mute", *arguments)
    assert ran.code == 2
    assert part in ran.err[0]
