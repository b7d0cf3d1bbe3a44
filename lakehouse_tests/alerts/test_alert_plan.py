"""Decisions: which messages are sent about incidents, and when."""

import hypothesis.strategies as st
from hypothesis import given

from lakehouse.alerts.incidents import Incident, Resolved
from lakehouse_tests.alerts.facts import DAY_MINUTES, at, events, firing, mute, plan, resolved

A, B = "check silver.fruits a", "check silver.fruits b"


def test_repeated_failures_send_one_message():
    first = plan({}, 1, firing(1))
    again = plan(first.open, 2, firing(2), firing(2.5))

    assert events(first.alerts) == [("opened", A)]
    assert again.alerts == []
    assert again.open[A].times == 3


def test_a_resolution_sends_one_message():
    first = plan({}, 1, firing(1))
    over = plan(first.open, 2, resolved(2))
    after = plan(over.open, 3, resolved(2), resolved(3))

    assert events(over.alerts) == [("recovered", A)]
    assert over.alerts[0].title == f"Resolved: {A}"
    assert over.open == {}
    assert after.alerts == []


def test_an_earlier_success_resolves_nothing():
    first = plan({}, 2, firing(2))

    assert plan(first.open, 3, resolved(1)).open == first.open


def test_failure_and_resolution_between_two_rounds_are_sent_in_order():
    found = plan({}, 9, resolved(4), firing(3))

    assert events(found.alerts) == [("opened", A), ("recovered", A)]


def test_the_first_round_sends_only_open_incidents():
    found = plan({}, 9, firing(3), resolved(4), firing(5, key=B), is_first=True)

    assert events(found.alerts) == [("opened", B)]


def test_an_error_is_repeated_after_a_day():
    first = plan({}, 0, firing(0))

    assert plan(first.open, DAY_MINUTES - 1).alerts == []
    assert events(plan(first.open, DAY_MINUTES).alerts) == [("repeated", A)]


def test_a_warning_is_repeated_if_it_fires_again():
    first = plan({}, 0, firing(0, severity="warn"))
    again = firing(DAY_MINUTES, severity="warn")

    assert plan(first.open, DAY_MINUTES).alerts == []
    assert events(plan(first.open, DAY_MINUTES + 1, again).alerts) == [("repeated", A)]


def test_an_acknowledged_incident_is_not_repeated():
    first = plan({}, 0, firing(0))
    open_now = {A: Incident(**{**vars(first.open[A]), "acknowledged": "ben: known"})}

    assert plan(open_now, DAY_MINUTES).alerts == []
    assert events(plan(open_now, 2, resolved(1)).alerts) == [("recovered", A)]


def test_each_message_has_its_own_id():
    first = plan({}, 0, firing(0))
    second = plan(first.open, DAY_MINUTES)
    third = plan(second.open, 2 * DAY_MINUTES)

    assert len({one.alerts[0].alert_id for one in (first, second, third)}) == 3


def test_an_incident_that_opens_again_from_the_same_failure_has_other_ids():
    complete = frozenset({"check"})
    first = plan({}, 1, firing(1))
    over = plan(first.open, 2, complete=complete)
    again = plan(over.open, 3, firing(1))
    over_again = plan(again.open, 4, complete=complete)

    rounds = (first, over, again, over_again)
    assert len({one.alerts[0].alert_id for one in rounds}) == 4
    after_a_kill = plan(over.open, 3, firing(1))
    assert after_a_kill.alerts == again.alerts


def test_partitions_are_resolved_one_by_one():
    first = plan(
        {}, 1, firing(1, affected_partitions=["1", "2"]), firing(2, affected_partitions=["3"])
    )
    some = plan(first.open, 4, resolved(3, affected_partitions=["1", "3"]))
    over = plan(some.open, 6, resolved(5, affected_partitions=["2"]))

    assert some.alerts == []
    assert some.open[A].affected_partitions == {"2"}
    assert events(over.alerts) == [("recovered", A)]


def test_a_partition_does_not_resolve_an_entire_table():
    first = plan({}, 1, firing(1))

    assert plan(first.open, 3, resolved(2, affected_partitions=["1"])).open == first.open


def test_an_entire_table_resolves_all_partitions():
    first = plan({}, 1, firing(1, affected_partitions=["1", "2"]))

    assert plan(first.open, 3, resolved(2)).open == {}


def test_an_incident_of_a_complete_kind_is_resolved_if_it_no_longer_fires():
    complete = frozenset({"overdue"})
    late = firing(1, key="overdue silver.fruits", kind="overdue")
    first = plan({}, 1, late, complete=complete)

    assert plan(first.open, 2, late, complete=complete).alerts == []
    assert plan(first.open, 2).alerts == []
    over = plan(first.open, 2, complete=complete)
    assert events(over.alerts) == [("recovered", "overdue silver.fruits")]


def test_a_muted_incident_is_recorded_and_sent_when_the_mute_expires():
    muted = [mute(10, "silver.*")]
    first = plan({}, 1, firing(1), mutes=muted)
    after = plan(first.open, 10, mutes=muted)

    assert [alert.muted for alert in first.alerts] == [str(muted[0])]
    assert plan(first.open, 9, mutes=muted).alerts == []
    assert [(alert.saying, alert.muted) for alert in after.alerts] == [("opened", "")]
    assert after.alerts[0].alert_id != first.alerts[0].alert_id


def test_recipients_of_an_incident_get_its_resolution_during_a_mute():
    first = plan({}, 1, firing(1))
    over = plan(first.open, 3, resolved(2), mutes=[mute(10)])

    assert [(alert.saying, alert.muted) for alert in over.alerts] == [("recovered", "")]


def test_an_incident_that_is_resolved_during_a_mute_is_not_sent():
    first = plan({}, 1, firing(1), mutes=[mute(10)])
    over = plan(first.open, 3, resolved(2), mutes=[mute(10)])

    assert all(alert.muted for alert in (*first.alerts, *over.alerts))


def test_a_retried_failure_is_sent_if_it_recurs_or_lasts():
    first = plan({}, 1, firing(1, heals=True))

    assert first.alerts == []
    assert plan(first.open, 2, resolved(2)).alerts == []
    assert events(plan(first.open, 2, firing(2, heals=True)).alerts) == [("opened", A)]
    assert events(plan(first.open, 4).alerts) == [("opened", A)]


def test_growth_of_a_hundredth_sends_another_message_after_a_pause():
    first = plan({}, 0, firing(0, size=100))

    assert plan(first.open, 4, firing(4, size=102)).alerts == []
    assert events(plan(first.open, 5, firing(4, size=101)).alerts) == [("grew", A)]


def test_growth_after_a_decrease_sends_another_message():
    first = plan({}, 0, firing(0, size=100))
    fewer = plan(first.open, 10, firing(0, size=10))
    more = plan(fewer.open, 20, firing(19, size=90))

    assert (fewer.alerts, events(more.alerts)) == ([], [("grew", A)])
    assert more.alerts[0].lines[0].startswith("80 more since ")


def test_less_growth_waits_for_a_day():
    first = plan({}, 0, firing(0, size=1000, severity="warn"))
    grown = plan(first.open, 10, firing(9, size=1001, severity="warn"))

    assert grown.alerts == []
    assert events(plan(grown.open, DAY_MINUTES).alerts) == [("repeated", A)]


KEYS = st.sampled_from([A, B])
FACTS = st.lists(
    st.one_of(
        st.builds(lambda minutes, key: firing(minutes, key), st.integers(1, 500), KEYS),
        st.builds(lambda minutes, key: resolved(minutes, key), st.integers(1, 500), KEYS),
    ),
    max_size=30,
    unique_by=lambda fact: fact.at,
)


@given(FACTS, st.lists(st.integers(1, 500), max_size=5))
def test_each_incident_opens_and_is_resolved_in_turn(facts, rounds):
    """For any facts and rounds, also if detectors report the latest failure again."""
    open_now: dict[str, Incident] = {}
    sent: list[tuple[str, str]] = []
    for minute in [*sorted(rounds), 501]:
        found = plan(open_now, minute, *(fact for fact in facts if fact.at <= at(minute)))
        facts = [
            fact for fact in facts if fact.at > at(minute) or _is_latest(fact, facts, minute)
        ]
        open_now = dict(found.open)
        sent += events(found.alerts)
    for key in (A, B):
        of_key = [saying for saying, of in sent if of == key]
        pairs, is_open = divmod(len(of_key), 2)
        assert of_key == ["opened", "recovered"] * pairs + ["opened"] * is_open
        assert (key in open_now) == bool(is_open)


def _is_latest(fact, facts, minute) -> bool:
    same = [one for one in facts if one.key == fact.key and one.at <= at(minute)]
    return fact is max(same, key=lambda one: one.at) and not isinstance(fact, Resolved)
