"""Queues, summaries and deliveries: each message once and in order, despite failures."""

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from lakehouse.alerts.alert_plan import plan_alerts
from lakehouse.alerts.alert_routes import Route, Routes, name_of
from lakehouse.alerts.alert_state import AlertState, Queue, read_state, write_state
from lakehouse.alerts.dispatch import Dispatcher, after_failure, route_alerts, summarize
from lakehouse.alerts.incidents import Alert, Observed
from lakehouse.alerts.sinks import open_sinks
from lakehouse.settings import Settings
from lakehouse_tests.alerts.facts import DAY, at, events, firing, mute, plan, resolved
from lakehouse_tests.alerts.receiver import Receiver

LOGGER = logging.getLogger("lakehouse.alerts")
A, B = "check silver.fruits a", "check silver.fruits b"
AT_ONCE = 10


def alerts(number: int, first: int = 0, minutes: float = 0, **fields) -> list[Alert]:
    keys = [f"check silver.t{n} a" for n in range(first, first + number)]
    return plan({}, minutes, *(firing(minutes, key=key, **fields) for key in keys)).alerts


def send(settings: Settings, routes: Routes, minutes: float, *facts) -> AlertState:
    """Plan, queue and deliver, as a round does; a refused message is retried at once."""
    known = read_state(settings)
    queues = {name: replace(queue, retry_at=None) for name, queue in known.queues.items()}
    state = replace(known, queues=queues)
    planned = plan_alerts(state, Observed(facts), at(minutes), DAY)
    state = replace(state, open=planned.open, cursors={"round_at": minutes})
    state = route_alerts(state, planned.alerts, routes)
    sinks = open_sinks(settings, routes.urls, LOGGER)
    save = partial(write_state, settings)
    result = Dispatcher(state, save, LOGGER, routes.at_once).run(sinks)
    write_state(settings, result)
    return result


def deliver(state: AlertState, sink: "Recorder") -> AlertState:
    return Dispatcher(state, lambda _: None, LOGGER, AT_ONCE).run({sink.name: sink})


@pytest.mark.parametrize(("number", "received"), [(AT_ONCE, AT_ONCE), (AT_ONCE + 1, 1)])
def test_many_waiting_messages_are_one_summary(number: int, received: int) -> None:
    sink = Recorder(Steps(10**6), "json-1")
    state = deliver(AlertState(queues={"json-1": Queue(tuple(alerts(number)))}), sink)

    assert len(sink.received) == received
    assert state.undelivered == 0


def test_a_failed_summary_is_sent_later_with_further_messages() -> None:
    sink = Recorder(Steps(10**6), "json-1", is_down=True)
    state = deliver(AlertState(queues={"json-1": Queue(tuple(alerts(AT_ONCE + 1)))}), sink)
    assert state.undelivered == AT_ONCE + 1
    sink.is_down = False
    waiting = Queue((*state.queues["json-1"].pending, *alerts(1, first=50)))

    assert deliver(replace(state, queues={"json-1": waiting}), sink).undelivered == 0
    assert [alert.title.split(",")[0] for alert in sink.received] == [
        "12 alerts at once: 12 firing"
    ]


def test_a_failed_message_does_not_block_other_incidents():
    opened, other = alerts(2)
    over = replace(opened, alert_id="over", saying="recovered")
    queue = Queue((opened, over, other))

    assert after_failure(queue, opened).pending == (other, opened, over)


def test_the_queue_of_a_removed_recipient_is_deleted():
    state = AlertState(queues={"removed": Queue(tuple(alerts(1)))})

    assert route_alerts(state, [], Routes()).queues == {}


def test_a_muted_message_is_not_queued():
    routes = Routes(route=(Route(to=("json://127.0.0.1:1/",)),))
    muted = plan({}, 1, firing(1), mutes=[mute(10)]).alerts

    assert route_alerts(AlertState(), muted, routes).undelivered == 0


def test_a_summary_lists_titles_errors_first():
    checks = alerts(21, severity="warn")
    blocked = alerts(1, first=50, table="gold.days", kind="blocked", title="gold is blocked")

    summary = summarize([*checks, *blocked], at(1))

    assert summary.title == "22 alerts at once: 22 firing"
    assert summary.lines[:3] == ("Errors: 1", "- gold is blocked", "- check silver.t0 a")
    assert summary.lines[-2:] == ("- and 2 more", "Next: lakehouse alerts --open")


def test_a_summary_of_resolutions_is_a_resolution():
    over = [replace(alert, saying="recovered") for alert in alerts(12)]

    summary = summarize(over, at(1))

    assert (summary.saying, summary.lines[0]) == ("recovered", "Errors: 0")


def test_a_summary_of_the_same_messages_has_the_same_id():
    some = alerts(3)

    assert summarize(some, at(1)).alert_id == summarize(some[::-1], at(2)).alert_id


@pytest.mark.long
def test_a_recovered_recipient_gets_all_messages_once_and_in_order(
    settings: Settings, receiver: Receiver
) -> None:
    routes = Routes(route=(Route(to=(receiver.url,)),))
    receiver.is_down = True
    send(settings, routes, 1, firing(1), firing(1.5, key=B))
    assert send(settings, routes, 2, resolved(2)).undelivered == 3
    receiver.is_down = False

    assert send(settings, routes, 3).undelivered == 0
    send(settings, routes, 4)
    assert sorted(receiver.titles) == sorted([A, B, f"Resolved: {A}"])
    assert receiver.titles.index(A) < receiver.titles.index(f"Resolved: {A}")


def test_a_failing_recipient_does_not_delay_others(
    settings: Settings, receiver: Receiver
) -> None:
    # Nothing listens on port 1.
    routes = Routes(route=(Route(to=("json://127.0.0.1:1/", receiver.url)),))

    state = send(settings, routes, 1, firing(1))

    assert receiver.titles == [A]
    assert len(state.queues[name_of("json://127.0.0.1:1/")].pending) == 1
    assert state.queues[name_of(receiver.url)].pending == ()


def test_a_route_filters_by_severity_owner_and_table(
    settings: Settings, receiver: Receiver
) -> None:
    route = Route(
        to=(receiver.url,), severity=("error",), owner=("data-*",), table=("silver.*",)
    )
    send(
        settings,
        Routes(route=(route,)),
        1,
        firing(1, owner="data-platform"),
        firing(1, key="a warning", owner="data-platform", severity="warn"),
        firing(1, key="of gold", owner="data-platform", table="gold.fruits"),
        firing(1, key="of sales", owner="sales"),
    )

    assert receiver.titles == [A]


class Killed(BaseException):
    """The process is killed here."""


@dataclass
class Steps:
    """Kills the process at one of its steps."""

    last: int
    count: int = 0

    def step(self) -> None:
        self.count += 1
        if self.count > self.last:
            raise Killed


@dataclass
class Recorder:
    """A recipient; the process can be killed before and after a delivery."""

    steps: Steps
    name: str
    received: list[Alert] = field(default_factory=list)
    is_down: bool = False

    def send(self, alert: Alert) -> None:
        if self.is_down:
            raise OSError
        self.steps.step()
        self.received.append(alert)
        self.steps.step()


@pytest.mark.scenario
@hypothesis_settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 30), max_size=4))
def test_a_killed_process_loses_no_message_and_repeats_it_with_its_id(
    kills: list[int],
) -> None:
    facts = [firing(1), firing(2, key=B), resolved(3), firing(4), resolved(5, key=B)]
    url = "json://127.0.0.1:1/"
    recorder = Recorder(Steps(0), name_of(url))
    with TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        for life, last in enumerate([*kills, 10**6], start=1):
            recorder.steps = Steps(last)
            _live(settings, recorder, Routes(route=(Route(to=(url,)),)), facts, life)
    once = {alert.alert_id: alert for alert in recorder.received}
    assert events(once.values()) == [
        ("opened", A),
        ("opened", B),
        ("recovered", A),
        ("opened", A),
        ("recovered", B),
    ]
    assert len(recorder.received) - len(once) <= len(kills)


def _live(
    settings: Settings, recorder: Recorder, routes: Routes, facts: list, life: int
) -> None:
    def save(state: AlertState) -> None:
        recorder.steps.step()
        write_state(settings, state)
        recorder.steps.step()

    try:
        state = read_state(settings)
        for number in range(state.cursors.get("seen", 0), len(facts)):
            now = at(10 * life + number) + timedelta(hours=life)
            planned = plan_alerts(state, Observed((facts[number],)), now, DAY)
            state = replace(state, open=planned.open, cursors={"seen": number + 1})
            state = route_alerts(state, planned.alerts, routes)
            save(state)
        Dispatcher(state, save, LOGGER, AT_ONCE).run({recorder.name: recorder})
    except Killed:
        return
