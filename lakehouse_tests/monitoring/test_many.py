"""Much that breaks at once: one summary, whatever it is that broke, and nothing that is told of
neither way.
"""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from lakehouse.monitoring.alert_log import read_alerts
from lakehouse.monitoring.alerts_sensor import detect_and_dispatch
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.outbox import WINDOW, Queue, enqueue
from lakehouse.orchestration.alert import Alert
from lakehouse.orchestration.instance import open_instance
from lakehouse.settings import Settings
from lakehouse_tests.monitoring.breaks import at
from lakehouse_tests.monitoring.receiver import Receiver
from lakehouse_tests.monitoring.test_outbox import alerts

MANY, AT_ONCE = 500, 10
NAMES = [f"rule_{number}" for number in range(MANY)]


@dg.asset(
    key=["silver", "fruits"],
    check_specs=[dg.AssetCheckSpec(name, asset=["silver", "fruits"]) for name in NAMES],
)
def fruits():
    """A table with many rules."""


@pytest.mark.e2e
def test_five_hundred_checks_that_fail_are_one_message(
    settings: Settings, receiver: Receiver
) -> None:
    settings = replace(settings, alert_urls=(receiver.url,))
    graph = dg.Definitions([fruits]).resolve_asset_graph()
    with open_instance(settings) as instance:

        def look() -> None:
            now = datetime.now(UTC)
            detect_and_dispatch(
                MonitorContext(instance, graph, {}, (), settings, now),
                logging.getLogger("lakehouse.alerts"),
            )

        look()
        for name in NAMES:
            instance.report_runless_asset_event(
                dg.AssetCheckEvaluation(fruits.key, name, False, {})
            )
        look()
        assert receiver.titles == ["500 alerts at once: 500 firing, in silver.fruits"]
        look()
    assert receiver.titles == ["500 alerts at once: 500 firing, in silver.fruits"]
    assert len(read_alerts(settings)) == MANY


@pytest.mark.long
@example([(5, 0), (6, 0), (6, 0)])
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=40))
def test_each_message_is_sent_by_itself_or_counted_in_one_summary(
    bursts: list[tuple[int, int]],
) -> None:
    """Whatever breaks when: no window has more than so many messages, and at most one summary.

    What waited counts when it is posted, and not when it broke.
    """
    queue, minutes, total = Queue(), 0.0, 0
    posted: list[tuple[datetime, Alert]] = []

    def post_at(queue: Queue, news: list[Alert], moment: datetime) -> Queue:
        after = enqueue(queue, news, moment, AT_ONCE)
        posted.extend((moment, parcel.alert) for parcel in after.parcels[len(queue.parcels) :])
        return after

    for number, pause in bursts:
        minutes += pause
        queue = post_at(queue, alerts(number, first=total, minutes=minutes), at(minutes))
        total += number
    queue = post_at(queue, [], at(minutes + WINDOW / timedelta(minutes=1)))
    assert queue.deferred == ()
    summed = sum(int(one.title.split()[0]) for _, one in posted if one.saying == "summary")
    assert summed + sum(one.saying == "opened" for _, one in posted) == total
    for begin, _ in posted:
        near = [one for moment, one in posted if timedelta() <= moment - begin < WINDOW]
        assert sum(one.saying == "opened" for one in near) <= AT_ONCE
        assert sum(one.saying == "summary" for one in near) <= 1
