"""What is told of things that break: once, again after a while, and when they are over."""

from datetime import timedelta

import hypothesis.strategies as st
from hypothesis import given

from lakehouse.monitoring.incidents import Incident, Resolved
from lakehouse_tests.monitoring.breaks import DAY, at, firing, plan, resolved, told

A, B = "check silver.fruits a", "check silver.fruits b"


def test_a_break_is_told_once_and_not_again_where_it_is_tried_again():
    first = plan({}, 1, firing(1))
    again = plan(first.open, 2, firing(2), firing(2.5))

    assert told(first.alerts) == [("opened", A)]
    assert again.alerts == []
    assert again.open[A].times == 3


def test_a_look_at_the_same_break_counts_it_once():
    first = plan({}, 1, firing(1))

    assert plan(first.open, 2, firing(1)).open == first.open


def test_what_mends_is_told_once():
    first = plan({}, 1, firing(1))
    over = plan(first.open, 2, resolved(2))
    after = plan(over.open, 3, resolved(2), resolved(3))

    assert told(over.alerts) == [("recovered", A)]
    assert over.alerts[0].title == f"Resolved: {A}"
    assert over.open == {}
    assert after.alerts == []


def test_a_break_is_not_over_for_what_was_well_before_it():
    first = plan({}, 2, firing(2))

    assert plan(first.open, 3, resolved(1)).open == first.open


def test_what_broke_and_mended_between_two_looks_is_told_in_order():
    assert told(plan({}, 9, resolved(4), firing(3)).alerts) == [("opened", A), ("recovered", A)]


def test_the_first_look_tells_only_what_is_still_broken():
    found = plan({}, 9, firing(3), resolved(4), firing(5, key=B), is_first=True)

    assert told(found.alerts) == [("opened", B)]


def test_an_error_is_told_again_after_a_while_and_a_warning_only_where_it_breaks_anew():
    error = plan({}, 0, firing(0))
    warning = plan({}, 0, firing(0, severity="warn"))
    day = DAY / timedelta(minutes=1)

    assert plan(error.open, day - 1).alerts == []
    assert told(plan(error.open, day).alerts) == [("repeated", A)]
    assert plan(warning.open, day).alerts == []
    assert told(plan(warning.open, day + 1, firing(day, severity="warn")).alerts) == [
        ("repeated", A)
    ]


def test_a_repeated_message_has_an_id_of_its_own():
    first = plan({}, 0, firing(0))
    day = DAY / timedelta(minutes=1)
    again = plan(first.open, day)
    once_more = plan(again.open, 2 * day)

    assert len({one.alerts[0].alert_id for one in (first, again, once_more)}) == 3


def test_partitions_mend_one_by_one():
    first = plan(
        {}, 1, firing(1, affected_partitions=["1", "2"]), firing(2, affected_partitions=["3"])
    )
    some = plan(first.open, 4, resolved(3, affected_partitions=["1", "3"]))
    over = plan(some.open, 6, resolved(5, affected_partitions=["2"]))

    assert some.alerts == []
    assert some.open[A].affected_partitions == {"2"}
    assert told(over.alerts) == [("recovered", A)]


def test_one_partition_does_not_mend_the_whole():
    first = plan({}, 1, firing(1))

    assert plan(first.open, 3, resolved(2, affected_partitions=["1"])).open == first.open


def test_the_whole_mends_every_partition():
    first = plan({}, 1, firing(1, affected_partitions=["1", "2"]))

    assert plan(first.open, 3, resolved(2)).open == {}


def test_what_is_no_longer_among_all_that_is_broken_is_over():
    late = firing(1, key="overdue silver.fruits", kind="overdue")
    first = plan({}, 1, late, complete=frozenset({"overdue"}))
    same = plan(first.open, 2, late, complete=frozenset({"overdue"}))
    blind = plan(first.open, 2)
    over = plan(first.open, 2, complete=frozenset({"overdue"}))

    assert told(first.alerts) == [("opened", "overdue silver.fruits")]
    assert same.alerts == blind.alerts == []
    assert told(over.alerts) == [("recovered", "overdue silver.fruits")]


def test_what_breaks_while_it_is_muted_is_marked_so_and_told_once_the_mute_is_over():
    def muted(table, now):
        return "until noon by somebody" if now < at(10) else ""

    first = plan({}, 1, firing(1), silence_of=muted)
    still = plan(first.open, 9, silence_of=muted)
    after = plan(first.open, 10, silence_of=muted)

    assert [alert.muted for alert in first.alerts] == ["until noon by somebody"]
    assert still.alerts == []
    assert [(alert.saying, alert.muted) for alert in after.alerts] == [("opened", "")]
    assert after.alerts[0].alert_id != first.alerts[0].alert_id


def test_who_was_told_that_it_broke_is_told_that_it_is_over_though_it_was_muted_since():
    first = plan({}, 1, firing(1))
    over = plan(first.open, 3, resolved(2), silence_of=lambda *_: "until noon by somebody")

    assert [(alert.saying, alert.muted) for alert in over.alerts] == [("recovered", "")]


def test_what_broke_and_is_over_while_it_is_muted_is_told_to_nobody():
    def muted(*_):
        return "until noon by somebody"

    first = plan({}, 1, firing(1), silence_of=muted)
    over = plan(first.open, 3, resolved(2), silence_of=muted)

    assert [alert.muted for alert in (*first.alerts, *over.alerts)] == [muted(), muted()]


def test_what_may_heal_is_told_where_it_fails_again_or_lasts():
    heals = plan({}, 1, firing(1, heals=True))

    assert heals.alerts == []
    assert plan(heals.open, 2, resolved(2)).alerts == []
    assert told(plan(heals.open, 2, firing(2, heals=True)).alerts) == [("opened", A)]
    assert told(plan(heals.open, 4).alerts) == [("opened", A)]


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
def test_each_thing_opens_and_ends_in_turn_however_often_is_looked(facts, looks):
    """Whatever happens and whenever somebody looks, also at what was seen before: one opening,
    then one end of it.
    """
    open_now: dict[str, Incident] = {}
    said: list[tuple[str, str]] = []
    for moment in [*sorted(looks), 501]:
        found = plan(open_now, moment, *(fact for fact in facts if fact.at <= at(moment)))
        # Only what a source may show again stays in later looks: the latest fact of a thing.
        facts = [
            fact for fact in facts if fact.at > at(moment) or _is_latest(fact, facts, moment)
        ]
        open_now = dict(found.open)
        said += told(found.alerts)
    for key in (A, B):
        of_key = [saying for saying, of in said if of == key]
        assert of_key == ["opened", "recovered"] * (len(of_key) // 2) + ["opened"] * (
            len(of_key) % 2
        )
        assert (key in open_now) == bool(len(of_key) % 2)


def _is_latest(fact, facts, moment) -> bool:
    same = [one for one in facts if one.key == fact.key and one.at <= at(moment)]
    return fact is max(same, key=lambda one: one.at) and not isinstance(fact, Resolved)
