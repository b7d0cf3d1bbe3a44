"""Compaction as it is planned: which partitions, in which order, and what holds them back."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.iceberg.metadata.measured_health import (
    PartitionHealth,
    PartitionKey,
    RefHealth,
    SnapshotPin,
    TableHealth,
)
from lakehouse.maintenance.planner import Known, plan_compactions, plan_upkeep
from lakehouse.maintenance.table_reads import TableReads
from lakehouse.tables.upkeep import UpkeepPolicy
from lakehouse_tests.maintenance.sick_tables import (
    MB,
    NOW,
    TARGET,
    carried_out,
    compacted,
    compaction,
    day,
    partition,
    past,
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
    return PartitionHealth(
        key=replace(day(number), spec_id=draw(st.integers(min_value=0, max_value=1))),
        rows=rows,
        data_files=small + large,
        data_bytes=small_bytes + large * TARGET,
        small_files=small,
        small_bytes=small_bytes,
        delete_files=delete_files,
        delete_bytes=1000 * delete_files,
        deleted_rows=draw(st.integers(min_value=0, max_value=rows)) if delete_files else 0,
        dangling_delete_files=draw(st.integers(min_value=0, max_value=delete_files)),
        newest_file_at=draw(
            st.none()
            | st.integers(min_value=0, max_value=5000).map(
                lambda minutes: NOW - timedelta(minutes=minutes)
            )
        ),
        files_digest=f"{number}",
    )


@st.composite
def tables(draw: Any, name: str = "silver.t") -> TableHealth:
    """A table in any state."""
    ages = sorted(draw(st.lists(st.integers(1, 100_000), max_size=30)), reverse=True)
    # Half a minute, and half a day: nothing comes of age while a test looks again.
    times = tuple(NOW - timedelta(minutes=age + 0.5) for age in ages)
    refs = tuple(
        RefHealth(refused(number + 0.5), True, number, NOW - timedelta(days=number))
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
        name,
        *(draw(partitions(number)) for number in range(count)),
        snapshot_times=times,
        refs=refs,
        pins=tuple(pins),
        manifests=draw(st.integers(min_value=1, max_value=200)),
        lost_metadata_files=draw(st.none() | st.just(()) | st.just(("a.json",))),
    )


def test_three_sick_tables_and_a_budget_for_one_go_in_the_order_of_their_value() -> None:
    healths = [table(f"silver.{name}", partition(small=20)) for name in "abc"]
    reads = TableReads({"silver.a": 1, "silver.b": 100, "silver.c": 10})
    records, order, now = [], [], NOW
    for _ in range(4):
        known = Known(reads=reads, bytes_a_day=50 * MB, past=past(*records))
        plan = plan_upkeep(healths, known, now)
        compactions = [step.table for step in plan.due if step.step == "compact"]
        order.append(compactions)
        waiting = [
            step for step in plan.steps if step.step == "compact" and "today's" in step.reason
        ]
        assert all(
            step.not_before == datetime(now.year, 11, now.day + 1, tzinfo=now.tzinfo)
            for step in waiting
        )
        healths, new = carried_out(plan, healths, now)
        records += new
        now += timedelta(days=1)
    assert order == [["silver.b"], ["silver.c"], ["silver.a"], []]


def test_a_second_plan_on_the_same_day_has_no_bytes_left() -> None:
    healths = [table(f"silver.{name}", partition(small=20)) for name in "ab"]
    known = Known(bytes_a_day=50 * MB)
    after, records = carried_out(plan_upkeep(healths, known, NOW), healths, NOW)
    later = plan_upkeep(after, replace(known, past=past(*records)), NOW + timedelta(hours=1))
    assert [step.step for step in later.due] == []
    assert "today's" in step_of(later, "compact", "silver.b").reason


@given(reads=st.permutations([100, 10, 0]))
def test_equally_sick_tables_go_in_the_order_of_their_reads(reads: list[int]) -> None:
    names = {f"silver.t{count}": float(count) for count in reads}
    healths = [table(name, partition(small=20)) for name in names]
    plan = plan_upkeep(healths, Known(reads=TableReads(names)), NOW)
    compactions = [step.table for step in plan.due if step.step == "compact"]
    assert compactions == ["silver.t100", "silver.t10", "silver.t0"]


def test_reads_of_one_partition_count_for_it_alone() -> None:
    health = table("silver.t", partition(0, small=20), partition(1, small=20))
    reads = TableReads(by_partition={("silver.t", "2026-01-02"): 50.0})
    step = compaction(health, reads=reads, bytes_a_day=50 * MB)
    assert step.partitions == (day(1),)


@pytest.mark.long
@given(health=tables())
def test_after_a_perfect_run_a_plan_has_nothing_to_do_and_ten_more_neither(
    health: TableHealth,
) -> None:
    for by_name in (True, False):
        plan = plan_upkeep([health], Known(), NOW, named_by_user=by_name)
        (after,), records = carried_out(plan, [health], NOW)
        if after.lost_metadata_files is None:
            after = replace(after, lost_metadata_files=())
        for minute in range(1, 12):
            now = NOW + timedelta(seconds=minute)
            again = plan_upkeep([after], Known(past=past(*records)), now, named_by_user=by_name)
            assert [(step.step, step.reason) for step in again.due] == []


@given(
    small=st.integers(min_value=0, max_value=1),
    large=COUNTS,
    size=st.integers(min_value=1, max_value=95 * MB),
    by_name=st.booleans(),
)
def test_a_lone_small_file_is_never_rewritten(
    small: int, large: int, size: int, by_name: bool
) -> None:
    alone = partition(
        small=small, data_files=small + large, small_bytes=small * size,
        data_bytes=small * size + large * TARGET, rows=100,
    )  # fmt: skip
    assert not compaction(table("silver.t", alone), by_name=by_name).is_due


def test_only_the_partitions_that_gain_are_rewritten() -> None:
    well = partition(0, small=1, data_files=4)
    step = compaction(table("silver.t", well, partition(1, small=12)))
    assert step.partitions == (day(1),)
    assert step.reason == "1 partition with 12 small files"
    assert (step.gain.fewer_files, step.cost_bytes) == (11, 24 * MB)
    assert step.parameters == {"target_bytes": str(TARGET)}


@pytest.mark.long
@given(health=tables(), number=st.integers(min_value=0, max_value=5), more=st.integers(1, 50))
def test_the_same_bytes_in_more_small_files_are_never_planned_later(
    health: TableHealth, number: int, more: int
) -> None:
    sicker = []
    for before in health.partitions:
        after = before
        if before.key.values == day(number).values and before.small_files:
            after = replace(
                before,
                small_files=before.small_files + more,
                data_files=before.data_files + more,
            )
        sicker.append(after)
    other = table("silver.other", partition(small=10))
    known = Known(bytes_a_day=200 * MB)
    plan_before = plan_upkeep([health, other], known, NOW)
    plan_after = plan_upkeep([replace(health, partitions=tuple(sicker)), other], known, NOW)
    chosen_before = step_of(plan_before, "compact").partitions
    chosen_after = step_of(plan_after, "compact").partitions
    names = [key for key in chosen_before if key.values == day(number).values]
    assert set(names) <= set(chosen_after)


@pytest.mark.long
@given(health=tables())
def test_a_command_that_names_a_table_does_all_that_the_automatic_caller_does(
    health: TableHealth,
) -> None:
    automatic = plan_upkeep([health], Known(), NOW)
    named = plan_upkeep([health], Known(), NOW, named_by_user=True)
    compacted_by_name = set(step_of(named, "compact").partitions)
    assert set(step_of(automatic, "compact").partitions) <= compacted_by_name


@pytest.mark.long
@given(health=tables(), by_name=st.booleans())
def test_each_step_says_why(health: TableHealth, by_name: bool) -> None:
    for step in plan_upkeep([health], Known(), NOW, named_by_user=by_name).steps:
        assert step.reason
        assert step.is_due or any(not condition.is_met for condition in step.conditions)
        assert not step.is_due or step.not_before is None
        assert step.not_before is None or step.not_before > NOW


@pytest.mark.parametrize(
    ("minutes", "small", "due"), [(59, 12, False), (60, 12, True), (59, 20, True)]
)
def test_a_partition_that_is_written_to_waits_unless_it_is_very_sick(
    minutes: int, small: int, due: bool
) -> None:
    written_at = NOW - timedelta(minutes=minutes)
    hot = table("silver.t", partition(small=small, newest_file_at=written_at))
    step = compaction(hot)
    assert step.is_due is due
    assert compaction(hot, by_name=True).is_due
    if not due:
        assert step.not_before == written_at + timedelta(hours=1)
        assert step.reason == (
            "1 partition with 12 small files: written to within the last hour"
        )


@pytest.mark.parametrize(
    ("hours", "small", "due"), [(23, 4, False), (23, 5, True), (24, 2, True)]
)
def test_a_partition_at_rest_is_joined_to_the_last_and_others_when_it_is_worth_it(
    hours: int, small: int, due: bool
) -> None:
    written_at = NOW - timedelta(hours=hours)
    health = table("silver.t", partition(small=small, newest_file_at=written_at))
    assert compaction(health).is_due is due
    assert compaction(health, by_name=True).is_due


def test_too_few_files_are_the_reason_where_no_partition_has_enough() -> None:
    written_at = NOW - timedelta(hours=23)
    parts = [partition(number, small=4, newest_file_at=written_at) for number in range(3)]
    step = compaction(table("silver.t", *parts))
    assert step.reason == (
        "no partition has 5 small or delete files, or 2 and was not written to for a day"
    )
    healthy = table("silver.t", partition(small=0, data_files=2, data_bytes=2 * TARGET))
    assert compaction(healthy).reason == "no partition gains by it (1 or more)"


@pytest.mark.long
@given(one=tables("silver.a"), other=tables("silver.b"))
def test_compactions_alone_are_planned_as_they_are_with_all_else(
    one: TableHealth, other: TableHealth
) -> None:
    known = Known(reads=TableReads({"silver.a": 1, "silver.b": 9}), bytes_a_day=500 * MB)
    steps = plan_upkeep([one, other], known, NOW).steps
    planned = {step.table: step for step in steps if step.step == "compact"}
    assert plan_compactions([one, other], known, NOW) == planned


def test_a_rewrite_that_no_read_pays_for_waits_for_a_person() -> None:
    unread = table("silver.t", partition(small=2, small_bytes=120 * MB, data_bytes=120 * MB))
    step = compaction(unread, reads=TableReads())
    assert not step.is_due
    assert "read too seldom for a rewrite to pay for itself in 30 days" in step.reason
    assert compaction(unread, reads=TableReads({"silver.t": 2.0})).is_due
    assert compaction(unread, reads=TableReads(), by_name=True).is_due


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"delete_files": 5, "deleted_rows": 10}, "5 delete files, of 1% of the rows"),
        ({"delete_files": 1, "deleted_rows": 100}, "1 delete file, of 10% of the rows"),
        (
            {"delete_files": 5, "dangling_delete_files": 5},
            "5 delete files of what is not there",
        ),
        ({"key": PartitionKey(7)}, "2 files of an old partition spec"),
    ],
)
def test_deletes_and_old_specs_are_needs_too(parts: dict[str, Any], reason: str) -> None:
    sick = partition(small=0, rows=1000, data_files=2, data_bytes=2 * TARGET, **parts)
    step = compaction(table("silver.t", sick))
    assert step.is_due
    assert step.reason == f"1 partition with {reason}"


def test_what_no_partition_tells_apart_costs_a_rewrite_of_the_whole_table() -> None:
    old = partition(small=2, key=PartitionKey(7))
    rest = partition(small=0, data_files=3, data_bytes=3 * TARGET)
    step = compaction(table("silver.t", old, rest))
    assert step.partitions == (old.key,)
    assert step.cost_bytes == 2 * (2 * MB + 3 * TARGET)


def test_few_deletes_are_left_where_they_are() -> None:
    few = {"delete_files": 1, "deleted_rows": 10}
    well = partition(small=0, rows=1000, data_files=2, data_bytes=2 * TARGET, **few)
    assert not compaction(table("silver.t", well), by_name=True).is_due


def test_the_same_files_rewritten_twice_without_effect_are_left_alone() -> None:
    health = table("silver.t", partition(small=12))
    once, twice = past(compacted(health)), past(compacted(health), compacted(health))
    assert compaction(health, past=once).is_due
    for by_name in (True, False):
        step = compaction(health, past=twice, by_name=by_name)
        assert not step.is_due
        assert "rewritten before without effect, and the files are the same" in step.reason
    changed = table("silver.t", partition(small=13))
    assert compaction(changed, past=twice).is_due


def test_the_same_files_in_another_partition_are_another_matter() -> None:
    health = table("silver.t", partition(small=12, files_digest="same"))
    other = table("silver.t", partition(1, small=12, files_digest="same"))
    assert compaction(other, past=past(compacted(health), compacted(health))).is_due


def test_what_failed_waits_twice_as_long_each_time_but_for_a_person() -> None:
    health = table("silver.t", partition(small=12))
    failed = compacted(health, ended_at=NOW, outcome="failed")
    for count, minutes in ((1, 15), (2, 30), (3, 60), (20, 24 * 60)):
        in_vain = past(*[failed] * count)
        step = compaction(health, past=in_vain)
        assert (step.is_due, step.not_before) == (False, NOW + timedelta(minutes=minutes))
        assert compaction(health, past=in_vain, now=NOW + timedelta(minutes=minutes)).is_due
        assert compaction(health, past=in_vain, by_name=True).is_due
    recovered = past(failed, compacted(health, ended_at=NOW + timedelta(minutes=1)))
    assert compaction(health, past=recovered).is_due


@pytest.mark.parametrize("by_name", [True, False])
def test_what_found_nothing_to_do_is_not_tried_again_before_something_changes(
    by_name: bool,
) -> None:
    health = table("silver.t", partition(small=12))
    found_nothing = replace(
        compacted(health, outcome="skipped", ended_at=NOW),
        metadata_location=health.metadata_location,
        reason="no files gain by it",
    )
    step = compaction(health, past=past(found_nothing), by_name=by_name)
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=1))
    assert step.reason == "nothing changed since it found nothing to do: no files gain by it"
    changed = replace(health, metadata_location="later.json")
    assert compaction(changed, past=past(found_nothing), by_name=by_name).is_due


def test_what_a_writer_came_before_is_tried_again_soon_and_at_once_by_a_person() -> None:
    health = table("silver.t", partition(small=12))
    lost = replace(
        compacted(health, outcome="skipped", ended_at=NOW),
        metadata_location=health.metadata_location,
        had_conflict=True,
    )
    step = compaction(health, past=past(lost))
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(minutes=15))
    assert compaction(health, past=past(lost), by_name=True).is_due


def test_estimates_are_corrected_by_what_earlier_runs_came_to_within_bounds() -> None:
    health = table("silver.t", partition(small=12))
    promised = compaction(health)
    came_to = {
        "files_before": 12,
        "files_after": 6,
        "rewritten_bytes": 24 * MB,
        "added_bytes": 0,
    }
    corrected = compaction(table("silver.t", partition(1, small=12)), past=past(
        compacted(health, **came_to)
    ))  # fmt: skip
    assert (promised.gain.fewer_files, promised.cost_bytes) == (11, 24 * MB)
    assert (corrected.gain.fewer_files, corrected.cost_bytes) == (6, 24 * MB)
    assert corrected.uncorrected == promised.uncorrected
    dear = compacted(health, **came_to | {"rewritten_bytes": 2400 * MB})
    assert compaction(
        table("silver.t", partition(1, small=12)), past=past(dear)
    ).cost_bytes == (4 * 24 * MB)


def test_a_correction_is_of_the_newest_runs_and_of_their_table_alone() -> None:
    health = table("silver.t", partition(small=12))
    odd = compacted(
        health, files_before=12, files_after=1, rewritten_bytes=96 * MB,
        ended_at=NOW - timedelta(days=9),
    )  # fmt: skip
    other = table("silver.other", partition(small=12))
    assert compaction(other, past=past(odd), name="silver.other").cost_bytes == 24 * MB
    well = [compacted(health, ended_at=NOW - timedelta(days=number)) for number in range(4, 9)]
    again = table("silver.t", partition(1, small=12))
    assert compaction(again, past=past(odd)).cost_bytes == 96 * MB
    assert compaction(again, past=past(odd, *well)).cost_bytes == 24 * MB


def test_a_partition_compacted_three_times_in_short_order_is_a_matter_of_its_writer() -> None:
    health = table("silver.t", partition(small=12), partition(1, small=1))
    times = [compacted(health, ended_at=NOW - timedelta(hours=20 * n)) for n in range(3)]
    assert plan_upkeep([health], Known(past=past(*times[:2])), NOW).proposals == ()
    (proposal,) = plan_upkeep([health], Known(past=past(*times)), NOW).proposals
    assert proposal.startswith(
        "silver.t: day=2026-01-01 was compacted 3 times within 3 days, of 36 small files with"
        " 1.05 MB on average, where 134 MB is aimed at. Let its writer make fewer: commit less"
    )
    later = NOW + timedelta(days=2)
    assert plan_upkeep([health], Known(past=past(*times)), later).proposals == ()


@pytest.mark.parametrize(
    ("kept_by", "due"),
    [
        ("nobody", set()),
        ("glue", {"rewrite_manifests", "remove_lost_metadata", "compute_statistics"}),
    ],
)
def test_what_others_keep_is_left_to_them_whoever_asks(kept_by: Any, due: set[str]) -> None:
    sick = table(
        "silver.t",
        partition(small=50),
        manifests=99,
        snapshot_times=tuple(NOW - timedelta(days=99 - n) for n in range(9)),
        lost_metadata_files=("a.json",),
    )
    known = Known(policies={"silver.t": UpkeepPolicy(kept_by=kept_by)})
    plan = plan_upkeep([sick], known, NOW, named_by_user=True)
    assert {step.step for step in plan.due} == due
    assert f"kept_by='{kept_by}'" in step_of(plan, "compact").reason


def test_a_table_without_a_snapshot_is_left_alone() -> None:
    plan = plan_upkeep([table("silver.t", snapshot_id=None)], Known(), NOW, named_by_user=True)
    assert plan.due == ()


def test_a_partition_larger_than_a_days_bytes_has_a_day_of_its_own() -> None:
    health = table("silver.t", partition(small=90))
    assert compaction(health, bytes_a_day=100 * MB).is_due
    spent = past(compacted(table("silver.s", partition(small=2)), ended_at=NOW))
    assert not compaction(health, bytes_a_day=100 * MB, past=spent).is_due
