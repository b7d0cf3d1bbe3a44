"""How messages wait for a sink: not too many at once, in order for each thing, each until it
was taken.
"""

from dataclasses import replace
from datetime import timedelta

from lakehouse.monitoring.outbox import (
    WINDOW,
    Queue,
    drop_delivered,
    enqueue,
    is_due,
    keep_known,
    next_parcel,
    postpone_refused,
)
from lakehouse.orchestration.alert import Alert
from lakehouse_tests.monitoring.breaks import at, firing, plan

AT_ONCE = 10
_WINDOW_MINUTES = WINDOW / timedelta(minutes=1)


def alerts(number: int, first: int = 0, minutes: float = 0) -> list[Alert]:
    facts = tuple(
        firing(minutes, key=f"check silver.t{n} a") for n in range(first, first + number)
    )
    return plan({}, minutes, *facts).alerts


def sayings(queue: Queue) -> list[str]:
    return [parcel.alert.saying for parcel in queue.parcels]


def test_few_messages_are_sent_each():
    assert sayings(enqueue(Queue(), alerts(AT_ONCE), at(0), AT_ONCE)) == ["opened"] * AT_ONCE


def test_what_goes_on_breaking_is_summed_up_once_in_each_window():
    queue = Queue()
    for minute in range(11):
        queue = enqueue(
            queue, alerts(100, first=100 * minute, minutes=minute), at(minute), AT_ONCE
        )

    assert sayings(queue) == ["summary"] * 3
    assert [parcel.alert.title for parcel in queue.parcels] == [
        "100 alerts at once: 100 firing, in silver.fruits",
        "500 alerts at once: 500 firing, in silver.fruits",
        "500 alerts at once: 500 firing, in silver.fruits",
    ]
    assert queue.deferred == ()


def test_what_waits_for_a_summary_is_told_once_the_window_is_over_though_nothing_else_breaks():
    queue = enqueue(
        enqueue(Queue(), alerts(50), at(0), AT_ONCE), alerts(20, first=50), at(1), AT_ONCE
    )
    assert len(queue.deferred) == 20
    later = enqueue(queue, [], at(_WINDOW_MINUTES), AT_ONCE)

    assert sayings(later) == ["summary", "summary"]
    assert later.deferred == ()


def test_a_message_waits_until_it_was_taken():
    queue = enqueue(Queue(), alerts(2), at(0), AT_ONCE)
    first = queue.parcels[0].alert
    after = drop_delivered(queue, first)

    assert [parcel.alert.key for parcel in after.parcels] == ["check silver.t1 a"]
    assert enqueue(queue, [first], at(1), AT_ONCE).parcels == queue.parcels


def test_a_sink_that_is_down_is_left_in_peace_for_longer_each_time_and_tried_within_a_minute():
    queue = enqueue(Queue(), alerts(1), at(0), AT_ONCE)
    pauses = []
    for _ in range(9):
        queue = postpone_refused(queue, queue.parcels[0].alert, at(0))
        pauses.append((queue.retry_at - at(0)).total_seconds())

    assert pauses == [5, 10, 20, 40, 40, 40, 40, 40, 40]
    assert not is_due(queue, at(0.6))
    assert is_due(queue, at(0.7))
    assert queue.parcels[0].tries == 9


def test_what_is_said_of_one_thing_stays_in_order_and_a_message_that_is_refused_holds_up_no_other():
    opened, other = alerts(2)
    over = replace(opened, alert_id="over", saying="recovered")
    queue = enqueue(Queue(), [opened, over, other], at(0), AT_ONCE)

    assert next_parcel(queue, []).alert == opened
    assert next_parcel(queue, [opened.key]).alert == other
    assert next_parcel(queue, [opened.key, other.key]) is None


def test_what_waits_for_a_sink_that_was_taken_away_is_dropped():
    queue = enqueue(Queue(), alerts(1), at(0), AT_ONCE)

    assert keep_known({"gone": queue}, ["new"]) == {"new": Queue()}
