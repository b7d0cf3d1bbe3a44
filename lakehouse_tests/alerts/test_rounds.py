"""A round of the sensor: failing detectors, the record, the heartbeat and the UI."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.alerts.alert_state import AlertState, read_state
from lakehouse.alerts.alerts_sensor import detect_and_dispatch, read_heartbeat
from lakehouse.alerts.incidents import Firing, Observed
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.operator_actions import close
from lakehouse.alerts.sinks import read_alerts
from lakehouse_tests.alerts.facts import firing, reject
from lakehouse_tests.alerts.receiver import Receiver
from lakehouse_tests.alerts.watch import Watch

LOGGER = logging.getLogger("lakehouse.alerts")
WARNS = "silver.fruits: check length_fruit warns"


def run_round(watch: Watch, *facts: Firing) -> AlertState:
    """Run a round with the facts of a detector, and return the state."""
    graph = watch.definitions.resolve_asset_graph()
    context = MonitorContext(watch.instance, graph, {}, (), watch.settings, datetime.now(UTC))
    state = detect_and_dispatch(context, LOGGER, {"facts": lambda _: Observed(facts)})
    assert state is not None
    return state


def fails(number: int = 1) -> tuple[Firing, ...]:
    """Return failures that no detector removes."""
    keys = [f"reported {n}" for n in range(number)]
    now = datetime.now(UTC)
    return tuple(replace(firing(0, key, kind="reported", table=""), at=now) for key in keys)


def test_a_message_reaches_record_log_and_webhook(
    watch: Watch, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    watch = watch.with_settings(alert_urls=(receiver.url,))
    with caplog.at_level(logging.INFO):
        state = run_round(watch, *fails())

    (received,), (alert,) = receiver.taken, read_alerts(watch.settings)
    assert (received.body["title"], alert.title) == ("reported 0", "reported 0")
    assert received.headers["idempotency-key"] == alert.alert_id
    assert "reported 0" in caplog.text
    assert state.undelivered == 0


def test_five_hundred_failures_are_one_message_and_all_are_recorded(
    watch: Watch, receiver: Receiver
) -> None:
    watch = watch.with_settings(alert_urls=(receiver.url,))
    run_round(watch, *fails(500))
    run_round(watch)

    assert receiver.titles == ["500 alerts at once: 500 firing"]
    assert len({alert.alert_id for alert in read_alerts(watch.settings)}) == 500


def test_a_closing_is_recorded_at_once_and_sent_in_the_next_round(
    watch: Watch, receiver: Receiver
) -> None:
    """A command can have other recipients in its environment than `lakehouse dev`."""
    sent = watch.with_settings(alert_urls=(receiver.url,))
    run_round(sent, *fails())
    (alert,) = read_alerts(watch.settings)

    close(watch.settings, alert, by="ben", why="known")

    assert [one.saying for one in read_alerts(watch.settings)] == ["opened", "recovered"]
    assert read_state(watch.settings).undelivered == 1
    assert run_round(sent).undelivered == 0
    assert receiver.titles == ["reported 0", "Resolved: reported 0"]


@pytest.mark.long
def test_a_failing_detector_is_an_incident_and_stops_no_other(watch: Watch) -> None:
    reject(watch, "short")
    (reason,) = (watch.settings.home / "rejected" / "fruits").glob("*.json")
    good = reason.read_text()
    reason.write_text("{")
    watch.run("length_fruit")
    assert watch.titles() == [WARNS]
    assert watch.titles(later=timedelta(minutes=3)) == ["rejected files cannot be monitored"]
    assert watch.titles(later=timedelta(minutes=4)) == []
    reason.write_text(good)
    assert sorted(watch.titles(later=timedelta(minutes=5))) == [
        "Resolved: rejected files cannot be monitored",
        "feed fruits: file short was rejected",
    ]


def test_each_round_leaves_a_heartbeat(watch: Watch, receiver: Receiver) -> None:
    before = read_heartbeat(watch.settings)
    watch.with_settings(heartbeat_url=f"http://127.0.0.1:{receiver.port}/ping").round()
    after = read_heartbeat(watch.settings)
    assert before and after and before.at < after.at
    assert [taken.path for taken in receiver.taken] == ["/ping"]


def test_an_unreachable_heartbeat_url_stops_nothing(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.with_settings(heartbeat_url="http://127.0.0.1:1/secret").round()
    assert "LAKEHOUSE_HEARTBEAT_URL was not reached" in caplog.text
    assert "secret" not in caplog.text
