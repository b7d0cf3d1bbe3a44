"""Plans of all steps: order, byte budget, delays, and a plan after a perfect run."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.iceberg.metadata.health_metrics import (
    PartitionHealth,
    RefHealth,
    SnapshotPin,
    TableHealth,
)
from lakehouse.tables.upkeep import UpkeepPolicy
from lakehouse.upkeep.planner import Known, plan_upkeep
from lakehouse.upkeep.upkeep_records import PastUpkeep
from lakehouse_tests.upkeep.sick_tables import (
    MB,
    NOW,
    TARGET,
    carried_out,
    day,
    days_ago,
    partition,
    planned,
    record,
    refused,
    step_of,
    table,
)

pytestmark = pytest.mark.unit

COUNTS = st.integers(min_value=0, max_value=60)


@st.composite
def partitions(draw: Any, number: int = 0) -> PartitionHealth:
    """A partition in any state."""
    small, large = draw(COUNTS), draw(st.integers(min_value=0, max_value=5))
    small_bytes = small * draw(st.integers(min_value=1, max_value=95 * MB))
    rows = 100 * (small + large)
    delete_files = draw(st.integers(min_value=0, max_value=30)) if rows else 0
    age_minutes = draw(st.none() | st.integers(min_value=0, max_value=5000))
    return PartitionHealth(
        key=day(number),
        rows=rows,
        data_files=small + large,
        data_bytes=small_bytes + large * TARGET,
        small_files=small,
        small_bytes=small_bytes,
        delete_files=delete_files,
        delete_bytes=1000 * delete_files,
        deleted_rows=draw(st.integers(min_value=0, max_value=rows)) if delete_files else 0,
        newest_file_at=None if age_minutes is None else days_ago(age_minutes / 1440),
    )


@st.composite
def tables(draw: Any) -> TableHealth:
    """A table in any state."""
    ages = sorted(draw(st.lists(st.integers(1, 100_000), max_size=30)), reverse=True)
    # Half a minute, and half a day: no age limit is passed during a test.
    times = tuple(NOW - timedelta(minutes=age + 0.5) for age in ages)
    refs = tuple(
        RefHealth(refused(number + 0.5), True, number, days_ago(number))
        for number in draw(st.sets(st.integers(min_value=1, max_value=20), max_size=4))
    )
    pins = [
        SnapshotPin(f"branch {ref.name}", ref.snapshot_id, ref.committed_at) for ref in refs
    ]
    if times and draw(st.booleans()):
        at = draw(st.sampled_from(times))
        pins.append(SnapshotPin("watermark of silver.a", 9, at, draw(st.booleans())))
    count = draw(st.integers(min_value=0, max_value=6))
    return table(
        "silver.t",
        *(draw(partitions(number)) for number in range(count)),
        snapshot_times=times,
        refs=refs,
        pins=tuple(pins),
        manifests=draw(st.integers(min_value=1, max_value=200)),
    )


def compacted(plan: Any) -> list[str]:
    return [step.table for step in plan.due if step.step == "compact"]


def test_tables_are_compacted_in_the_order_of_their_value_within_the_bytes_of_a_day() -> None:
    size = {"data_bytes": 20 * MB, "small_bytes": 20 * MB}
    healths = [
        table(f"silver.{name}", partition(small=small, **size))
        for name, small in (("a", 20), ("b", 40), ("c", 30))
    ]
    records, order, now = [], [], NOW
    for _ in range(4):
        known = Known(bytes_a_day=40 * MB, past=PastUpkeep(tuple(records)))
        plan = plan_upkeep(healths, known, now)
        order.append(compacted(plan))
        for step in plan.steps:
            if step.step == "compact" and "of today are used up" in step.reason:
                midnight = datetime(now.year, 11, now.day + 1, tzinfo=now.tzinfo)
                assert step.not_before == midnight
        healths, new = carried_out(plan, healths, now)
        records += new
        now += timedelta(days=1)
    assert order == [["silver.b"], ["silver.c"], ["silver.a"], []]


def test_a_compaction_larger_than_the_bytes_of_a_day_is_done_in_part() -> None:
    health = table("silver.t", partition(small=90))
    step = planned(health, "compact", bytes_a_day=100 * MB)
    assert (step.cost_bytes, step.work.keywords["max_bytes"]) == (100 * MB, 100 * MB)
    spent = record("compact", table("silver.s"), step_metrics={"rewritten_bytes": 100 * MB})
    assert not planned(health, "compact", spent, bytes_a_day=100 * MB).is_due
    by_name = planned(health, "compact", spent, bytes_a_day=100 * MB, by_name=True)
    assert (by_name.is_due, by_name.work.keywords["max_bytes"]) == (True, None)


@pytest.mark.long
@given(health=tables())
def test_after_a_perfect_run_nothing_is_due(health: TableHealth) -> None:
    for by_name in (True, False):
        plan = plan_upkeep([health], Known(), NOW, named_by_user=by_name)
        (after,), records = carried_out(plan, [health], NOW)
        for second in range(1, 4):
            known = Known(past=PastUpkeep(tuple(records)))
            now = NOW + timedelta(seconds=second)
            again = plan_upkeep([after], known, now, named_by_user=by_name)
            assert [(step.step, step.reason) for step in again.due] == []


@pytest.mark.long
@given(health=tables(), by_name=st.booleans())
def test_each_step_has_a_reason(health: TableHealth, by_name: bool) -> None:
    for step in plan_upkeep([health], Known(), NOW, named_by_user=by_name).steps:
        assert step.reason
        assert step.is_due == (step.work is not None)
        assert not step.is_due or step.not_before is None
        assert step.not_before is None or step.not_before > NOW


def test_a_failed_step_waits_twice_as_long_each_time_unless_a_user_names_the_table() -> None:
    health = table("silver.t", partition(small=12))
    failed = record("compact", health, outcome="failed")
    for count, minutes in ((1, 15), (2, 30), (3, 60), (20, 24 * 60)):
        failures = [failed] * count
        step = planned(health, "compact", *failures)
        assert (step.is_due, step.not_before) == (False, NOW + timedelta(minutes=minutes))
        later = NOW + timedelta(minutes=minutes)
        assert planned(health, "compact", *failures, now=later).is_due
        assert planned(health, "compact", *failures, by_name=True).is_due
    recovered = record("compact", health, ended_at=NOW + timedelta(minutes=1))
    assert planned(health, "compact", failed, recovered).is_due


def test_a_step_that_found_nothing_to_do_waits_for_a_day() -> None:
    health = table("silver.t", partition(small=12))
    nothing = record("compact", health, outcome="skipped", reason="no files gain by it")
    changed = replace(health, metadata_location="later.json")
    step = planned(health, "compact", nothing)
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=1))
    assert not planned(changed, "compact", nothing).is_due
    assert not planned(health, "compact", nothing, by_name=True).is_due
    assert planned(changed, "compact", nothing, by_name=True).is_due


def test_a_step_with_a_conflict_is_retried_soon_and_at_once_if_a_user_names_the_table() -> None:
    health = table("silver.t", partition(small=12))
    conflict = record("compact", health, outcome="skipped", had_conflict=True)
    step = planned(health, "compact", conflict)
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(minutes=15))
    assert planned(health, "compact", conflict, by_name=True).is_due


@pytest.mark.parametrize(
    ("kept_by", "due"), [("nobody", set()), ("glue", {"rewrite_manifests"})]
)
def test_steps_of_another_service_are_left_to_it(kept_by: Any, due: set[str]) -> None:
    sick = table(
        "silver.t",
        partition(small=50),
        manifests=99,
        snapshot_times=tuple(days_ago(99 - n) for n in range(9)),
    )
    known = Known(policies={"silver.t": UpkeepPolicy(kept_by=kept_by)})
    plan = plan_upkeep([sick], known, NOW, named_by_user=True)
    assert {step.step for step in plan.due} == due
    assert f"kept_by='{kept_by}'" in step_of(plan, "compact").reason


def test_a_table_without_a_snapshot_needs_no_upkeep() -> None:
    plan = plan_upkeep([table("silver.t", snapshot_id=None)], Known(), NOW, named_by_user=True)
    assert plan.due == ()


def test_the_next_check_is_the_first_time_at_which_a_step_can_be_due() -> None:
    ages = (20, 10, 5, 4, 3, 2, 1)
    health = table(
        "silver.t",
        partition(small=1),
        snapshot_times=tuple(map(days_ago, ages)),
        refs=(RefHealth(refused(6.5), True, 1, days_ago(6.5)),),
    )
    plan = plan_upkeep([health], Known(), NOW)
    assert plan.next_check("silver.t") == NOW + timedelta(days=0.5)
    assert plan.next_check("silver.other") is None
