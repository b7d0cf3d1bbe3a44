"""Messages reach their sinks at least once, whatever is down or killed, and no other sink waits
for it.
"""

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from lakehouse.monitoring.acknowledgements import close
from lakehouse.monitoring.alert_log import read_alerts
from lakehouse.monitoring.alert_settings import Route, Routes, name_of
from lakehouse.monitoring.alert_state import AlertState, read_state, write_state
from lakehouse.monitoring.dispatch import Dispatcher, enqueue_alerts
from lakehouse.monitoring.incidents import Observed
from lakehouse.monitoring.sinks import FILE_NAME, open_sinks
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings
from lakehouse_tests.monitoring.breaks import at, firing, resolved, told
from lakehouse_tests.monitoring.receiver import Receiver

LOGGER = logging.getLogger("lakehouse.alerts")
A, B = "check silver.fruits a", "check silver.fruits b"


def unmuted(*_) -> str:
    return ""


def seen(settings: Settings, routes: Routes, minutes: float, *facts) -> None:
    state = read_state(settings)
    write_state(
        settings,
        enqueue_alerts(
            state, Observed(facts, cursors={"x": minutes}), at(minutes), routes, unmuted
        ),
    )


def deliver(settings: Settings, routes: Routes) -> AlertState:
    # What was refused may be tried again at once.
    state = read_state(settings)
    state = replace(
        state,
        queues={name: replace(queue, retry_at=None) for name, queue in state.queues.items()},
    )
    sinks = open_sinks(settings, routes.urls, LOGGER)
    return Dispatcher(state, lambda now: write_state(settings, now), LOGGER).run(sinks)


@pytest.mark.long
def test_a_message_reaches_log_file_and_webhook(
    settings: Settings, receiver: Receiver, caplog
) -> None:
    routes = Routes((Route(to=(receiver.url,)),))
    seen(settings, routes, 1, firing(1, lines=("1 of 3 rows break it.",)))
    with caplog.at_level(logging.INFO):
        state = deliver(settings, routes)

    (taken,) = receiver.taken
    (alert,) = read_alerts(settings)
    assert taken.body["title"] == A
    assert "1 of 3 rows break it." in taken.body["message"]
    assert taken.headers["idempotency-key"] == alert.alert_id
    assert alert.alert_id in taken.body["message"]
    assert told([alert]) == [("opened", A)]
    assert any(
        A in record.getMessage() for record in caplog.records if record.name == LOGGER.name
    )
    assert state.undelivered == 0


def two_that_wait(settings: Settings, receiver: Receiver) -> Routes:
    """Let two messages wait for a receiver that is down, and return the way to it."""
    routes = Routes((Route(to=(receiver.url,)),))
    receiver.is_down = True
    seen(settings, routes, 1, firing(1), firing(1.5, key=B))
    deliver(settings, routes)
    return routes


@pytest.mark.long
def test_a_receiver_that_was_down_gets_all_of_it_once_and_in_order(
    settings: Settings, receiver: Receiver
) -> None:
    routes = two_that_wait(settings, receiver)
    seen(settings, routes, 2, resolved(2))
    assert deliver(settings, routes).undelivered == 3
    assert [alert.saying for alert in read_alerts(settings)] == [
        "opened",
        "opened",
        "recovered",
    ]
    receiver.is_down = False

    assert deliver(settings, routes).undelivered == 0
    assert receiver.titles == [A, B, f"Resolved: {A}"]
    deliver(settings, routes)
    assert len(receiver.taken) == 3


def test_a_command_that_knows_no_place_drops_nothing_and_the_next_round_tells_all_of_them(
    settings: Settings, receiver: Receiver
) -> None:
    """As `alerts close` in a shell without the addresses of `lakehouse dev`."""
    routes = two_that_wait(settings, receiver)
    alert = next(alert for alert in read_alerts(settings) if alert.key == A)
    assert settings.alert_urls == ()

    close(settings, alert, by="somebody", why="it was a mistake")

    assert [one.saying for one in read_alerts(settings)] == ["opened", "opened", "recovered"]
    assert read_state(settings).undelivered == 3
    receiver.is_down = False
    seen(settings, routes, 2)
    assert deliver(settings, routes).undelivered == 0
    assert receiver.titles == [A, B, f"Resolved: {A}"]
    assert len(read_alerts(settings)) == 3


def test_a_sink_that_is_down_holds_up_no_other(settings: Settings, receiver: Receiver) -> None:
    # Nothing listens on port 1.
    routes = Routes((Route(to=("json://127.0.0.1:1/", receiver.url)),))
    seen(settings, routes, 1, firing(1))

    state = deliver(settings, routes)
    assert receiver.titles == [A]
    assert state.queues[name_of("json://127.0.0.1:1/")].waiting == 1
    assert state.queues[name_of(receiver.url)].waiting == 0


def test_a_route_takes_what_it_is_for(settings: Settings, receiver: Receiver) -> None:
    routes = Routes(
        (
            Route(
                to=(receiver.url,), severity=("error",), owner=("data-*",), table=("silver.*",)
            ),
        )
    )
    seen(
        settings,
        routes,
        1,
        firing(1, owner="data-platform"),
        firing(1, key="a warning", owner="data-platform", severity="warn"),
        firing(1, key="of gold", owner="data-platform", table="gold.fruits"),
        firing(1, key="of others", owner="sales"),
    )
    deliver(settings, routes)

    assert receiver.titles == [A]
    assert len(read_alerts(settings)) == 4


def test_five_hundred_failures_are_one_message_and_each_stands_in_the_file(
    settings: Settings, receiver: Receiver
) -> None:
    routes = Routes((Route(to=(receiver.url,)),))
    seen(
        settings,
        routes,
        1,
        *(firing(1, key=f"check silver.t{number} a") for number in range(500)),
    )
    deliver(settings, routes)

    assert receiver.titles == ["500 alerts at once: 500 firing, in silver.fruits"]
    assert len({alert.alert_id for alert in read_alerts(settings)}) == 500


def test_half_a_line_of_a_process_that_was_killed_spoils_no_other(settings: Settings) -> None:
    settings.home.mkdir()
    (settings.home / FILE_NAME).write_text('{"alert_id": "half')
    seen(settings, Routes(), 1, firing(1))
    deliver(settings, Routes())

    assert told(read_alerts(settings)) == [("opened", A)]


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Steps:
    """Counts what a process does, and ends it at one of these steps."""

    last: int
    count: int = 0

    def step(self) -> None:
        self.count += 1
        if self.count > self.last:
            raise Killed


@dataclass
class Recorder:
    """A sink that remembers, and may be killed before and after it took a message."""

    steps: Steps
    name: str
    taken: list[Alert] = field(default_factory=list)

    def send(self, alert: Alert) -> None:
        self.steps.step()
        self.taken.append(alert)
        self.steps.step()


@pytest.mark.scenario
@hypothesis_settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 30), max_size=4))
def test_killed_between_any_two_steps_nothing_is_lost_and_what_is_doubled_has_the_same_id(
    kills: list[int],
) -> None:
    """Each life looks, keeps, delivers and keeps again; all but the last are ended somewhere in
    it.
    """
    happened = [firing(1), firing(2, key=B), resolved(3), firing(4), resolved(5, key=B)]
    url = "json://127.0.0.1:1/"
    routes = Routes((Route(to=(url,)),))
    recorder = Recorder(Steps(0), name_of(url))
    with TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        for life, last in enumerate([*kills, 10**6], start=1):
            recorder.steps = Steps(last)
            _live(settings, recorder, routes, happened, life)
    ids = [alert.alert_id for alert in recorder.taken]
    once = {alert.alert_id: alert for alert in recorder.taken}
    assert told(once.values()) == [
        ("opened", A), ("opened", B), ("recovered", A), ("opened", A), ("recovered", B),
    ]  # fmt: skip
    assert len(ids) - len(once) <= len(kills)


def _live(
    settings: Settings, recorder: Recorder, routes: Routes, happened: list, life: int
) -> None:
    def keep(state: AlertState) -> None:
        recorder.steps.step()
        write_state(settings, state)
        recorder.steps.step()

    try:
        state = read_state(settings)
        known = state.cursors.get("seen", 0)
        for number in range(known, len(happened)):
            cursors = {"seen": number + 1}
            now = at(10 * life + number) + timedelta(hours=life)
            state = enqueue_alerts(
                state, Observed((happened[number],), cursors=cursors), now, routes, unmuted
            )
            keep(state)
        Dispatcher(state, keep, LOGGER).run({recorder.name: recorder})
    except Killed:
        return
