"""Leftovers as they are planned: branches, snapshots and what pins them, manifests, orphans,
lost metadata files and statistics.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from lakehouse.cli.maintain import _print_plan
from lakehouse.iceberg.commit.branch import audit_branch
from lakehouse.iceberg.metadata.measured_health import RefHealth, SnapshotPin, TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.maintenance.planner import Known, plan_upkeep
from lakehouse.maintenance.table_reads import TableReads
from lakehouse.maintenance.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.maintenance.upkeep_record import UpkeepRecord, record_of
from lakehouse.tables.upkeep import UpkeepPolicy
from lakehouse_tests.maintenance.sick_tables import (
    NOW,
    compacted,
    partition,
    past,
    refused,
    step_of,
    table,
    write_id,
)

pytestmark = pytest.mark.unit


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def planned(
    health: TableHealth,
    step: StepName,
    *records: UpkeepRecord,
    by_name: bool = False,
    now: datetime = NOW,
    **policy: Any,
) -> PlannedStep:
    """A step of the plan of one table."""
    known = Known(policies={"silver.t": UpkeepPolicy(**policy)}, past=past(*records))
    return step_of(plan_upkeep([health], known, now, named_by_user=by_name), step)


def record(
    step: StepName, health: TableHealth, days: float, *, at: str = "", **step_metrics: float
) -> UpkeepRecord:
    """The record of a step that was done some days ago, after which the metadata was where the
    table's is, or `at`.
    """
    return record_of(
        planned(health, step),
        StepResult("silver.t", step, "done", step_metrics=step_metrics),
        health,
        ended_at=days_ago(days),
        metadata_location=at or health.metadata_location,
    )


def with_snapshots(*days: float, **parts: Any) -> TableHealth:
    return table(
        "silver.t", partition(small=1), snapshot_times=tuple(map(days_ago, days)), **parts
    )


OLD = (50, 45, 40, 35, 20, 10, 5, 4, 3)


def test_snapshots_older_than_the_policy_expire_but_for_the_newest() -> None:
    step = planned(with_snapshots(*OLD), "expire_snapshots")
    assert step.is_due
    assert step.gain.fewer_snapshots == 4
    assert step.parameters == {"older_than": days_ago(30).isoformat(), "keep": "5"}
    assert (
        planned(with_snapshots(*OLD), "expire_snapshots", keep_at_least=7).gain.fewer_snapshots
        == 2
    )
    assert not planned(with_snapshots(*OLD), "expire_snapshots", keep_at_least=9).is_due


def test_where_all_are_young_it_is_said_when_the_first_is_old() -> None:
    step = planned(with_snapshots(20, 10, 5, 4, 3, 2, 1), "expire_snapshots")
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=10))
    assert planned(with_snapshots(20, 10), "expire_snapshots").not_before is None


def test_a_watermark_keeps_its_snapshot_and_all_since_and_is_named() -> None:
    pin = SnapshotPin("watermark of silver.fruits", 1, days_ago(45), needs_later=True)
    step = planned(with_snapshots(*OLD, pins=(pin,)), "expire_snapshots")
    assert step.gain.fewer_snapshots == 1
    assert step.parameters["older_than"] == days_ago(45).isoformat()
    assert [condition.text for condition in step.conditions if not condition.is_met] == [
        "3 older snapshots stay, for the watermark of silver.fruits needs that of 2026-10-10 and"
        " all since"
    ]
    first = replace(pin, committed_at=days_ago(50))
    assert not planned(with_snapshots(*OLD, pins=(first,)), "expire_snapshots").is_due


@pytest.mark.parametrize("with_all", [True, False])
def test_a_dry_run_names_the_reader_that_retains_snapshots(
    capsys: pytest.CaptureFixture[str], *, with_all: bool
) -> None:
    pin = SnapshotPin("watermark of silver.fruits", 1, days_ago(50), needs_later=True)
    step = planned(with_snapshots(*OLD, pins=(pin,)), "expire_snapshots")
    _print_plan(UpkeepPlan(NOW, (step,)), "table", with_all=with_all)
    assert "for the watermark of silver.fruits needs that of" in capsys.readouterr().out


def test_a_tag_keeps_its_snapshot_alone() -> None:
    pin = SnapshotPin("tag month_end", 1, days_ago(45))
    step = planned(with_snapshots(*OLD, pins=(pin,)), "expire_snapshots")
    assert step.gain.fewer_snapshots == 3
    assert step.parameters["older_than"] == days_ago(30).isoformat()
    assert "1 older snapshot stays, for the tag month_end needs" in step.conditions[1].text


def test_a_branch_keeps_the_newest_few_up_to_its_own() -> None:
    health = with_snapshots(*OLD, refs=(branch("mine", 40),))
    assert planned(health, "expire_snapshots", keep_at_least=1).gain.fewer_snapshots == 3
    assert planned(health, "expire_snapshots", keep_at_least=2).gain.fewer_snapshots == 2


def test_snapshots_expire_once_a_day_unless_a_person_asks() -> None:
    health = with_snapshots(*OLD)
    lately = record("expire_snapshots", health, 0.5, at="other.json")
    step = planned(health, "expire_snapshots", lately)
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=0.5))
    assert planned(health, "expire_snapshots", lately, by_name=True).is_due
    assert planned(health, "expire_snapshots", record("expire_snapshots", health, 1)).is_due


def branch(name: str, days: float) -> RefHealth:
    return RefHealth(name, True, 1, days_ago(days))


def audit(days: float) -> str:
    return audit_branch(write_id(days))


def test_refused_branches_go_when_they_were_kept_for_long_enough() -> None:
    refs = (branch(refused(8), 8), branch(refused(6), 6), branch("mine", 99))
    health = table(refs=refs)
    step = planned(health, "drop_branches")
    assert step.is_due
    assert step.reason.startswith(
        f"1 stale branch: {refused(8)} (refused ones of more than 7 days"
    )
    assert step.parameters["refused_before"] == days_ago(7).isoformat()
    kept = planned(health, "drop_branches", refused_for=timedelta(days=9))
    assert (kept.is_due, kept.not_before) == (False, NOW + timedelta(days=1))


def test_the_branch_of_a_running_write_stays_however_old_what_it_points_at_is() -> None:
    running = table(refs=(branch(audit(0.1), 300),))
    assert not planned(running, "drop_branches", by_name=True).is_due
    assert planned(table(refs=(branch(audit(1.1), 300),)), "drop_branches").is_due


def test_what_a_stale_branch_pins_expires_in_the_same_round() -> None:
    stale = branch(refused(45), 45)
    pin = SnapshotPin(f"branch {refused(45)}", 1, days_ago(45), needs_later=True)
    health = with_snapshots(*OLD, refs=(stale,), pins=(pin,))
    plan = plan_upkeep([health], Known(), NOW)
    assert step_of(plan, "expire_snapshots").gain.fewer_snapshots == 4
    order = [step.step for step in plan.due]
    assert order.index("drop_branches") < order.index("expire_snapshots")


@pytest.mark.parametrize(
    ("manifests", "size", "due"),
    [(20, 10_000, False), (21, 10_000, True), (40, 300_000_000, False)],
)
def test_manifests_are_joined_where_there_are_many_more_than_are_needed(
    manifests: int, size: int, due: bool
) -> None:
    health = table("silver.t", partition(small=1), manifests=manifests, manifest_bytes=size)
    assert planned(health, "rewrite_manifests").is_due is due


def test_manifests_that_the_last_rewrite_could_not_join_are_not_tried_again() -> None:
    health = table("silver.t", partition(small=1), manifests=40)
    before = record("rewrite_manifests", health, 3, at="other.json", manifests_after=25)
    assert not planned(health, "rewrite_manifests", before).is_due
    assert planned(replace(health, manifests=45), "rewrite_manifests", before).is_due


def test_a_compaction_in_the_same_round_counts_with_the_manifests_that_it_adds() -> None:
    health = table("silver.t", partition(small=20), manifests=11)
    assert planned(health, "rewrite_manifests").is_due
    assert not planned(replace(health, partitions=()), "rewrite_manifests").is_due


def test_orphans_are_looked_for_at_first_then_where_the_table_changed_and_seldom() -> None:
    health = table("silver.t", partition(small=1), snapshot_times=(days_ago(8),))
    assert planned(health, "remove_orphans").is_due
    lately = record("remove_orphans", health, 3, at="other.json")
    step = planned(health, "remove_orphans", lately)
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=4))
    assert planned(health, "remove_orphans", lately, by_name=True).is_due
    assert planned(health, "remove_orphans", record("remove_orphans", health, 7, at="o")).is_due


def test_of_a_young_table_no_file_can_be_old_enough() -> None:
    health = table("silver.t", partition(small=1), snapshot_times=(days_ago(2),))
    step = planned(health, "remove_orphans")
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=5))
    known = record("compact", health, 7)
    assert planned(health, "remove_orphans", known).is_due


def test_files_that_were_listed_in_vain_were_listed_all_the_same() -> None:
    health = table("silver.t", partition(small=1), snapshot_times=(days_ago(8),))
    found_none = replace(record("remove_orphans", health, 2, at="o"), outcome="skipped")
    assert not planned(health, "remove_orphans", found_none).is_due
    lost = replace(found_none, had_conflict=True)
    assert planned(health, "remove_orphans", lost).is_due


def test_where_nothing_changed_files_are_listed_once_more_when_all_are_old_enough() -> None:
    health = with_snapshots(2)
    before = record("remove_orphans", health, 1)
    step = planned(health, "remove_orphans", before, by_name=True)
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=5))
    later = NOW + timedelta(days=6)
    assert planned(health, "remove_orphans", before, now=later).is_due
    final = replace(before, ended_at=later)
    much_later = NOW + timedelta(days=100)
    step = planned(health, "remove_orphans", before, final, now=much_later)
    assert (step.is_due, step.not_before) == (False, None)


def test_lost_metadata_files_go_and_those_too_young_wait_a_day() -> None:
    health = table("silver.t", partition(small=1), lost_metadata_files=("a.json", "b.json"))
    assert planned(health, "remove_lost_metadata").reason == (
        "2 metadata.json files that no log names (1 or more)"
    )
    before = record("remove_lost_metadata", health, 0.5)
    step = planned(health, "remove_lost_metadata", before)
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=0.5))
    assert not planned(health, "remove_lost_metadata", before, by_name=True).is_due
    assert planned(
        health, "remove_lost_metadata", record("remove_lost_metadata", health, 1)
    ).is_due
    assert not planned(table("silver.t"), "remove_lost_metadata").is_due


def statistics(
    health: TableHealth, *records: UpkeepRecord, reads: float = 5, **how: Any
) -> PlannedStep:
    known = Known(reads=TableReads({"silver.t": reads}), past=past(*records), **how)
    return step_of(plan_upkeep([health], known, NOW), "compute_statistics")


def test_statistics_are_of_tables_that_are_read_and_have_changed() -> None:
    health = table("silver.t", partition(small=20))
    assert statistics(health).is_due
    assert not statistics(health, reads=0.5).is_due
    assert not statistics(table("silver.t", partition(small=1))).is_due
    spent = compacted(table("silver.s", partition(small=20)), ended_at=NOW)
    assert not statistics(health, spent, bytes_a_day=20_000_000).is_due
    before = record("compute_statistics", health, 8)
    assert not statistics(health, before).is_due
    grown = table("silver.t", partition(small=20, rows=24_000))
    assert statistics(grown, before).is_due
    assert not statistics(grown, replace(before, ended_at=days_ago(6))).is_due


def test_the_next_look_is_when_something_may_be_due_though_nothing_changes() -> None:
    health = with_snapshots(20, 10, 5, 4, 3, 2, 1, refs=(branch(refused(6.5), 6.5),))
    plan = plan_upkeep([health], Known(), NOW)
    assert plan.next_check("silver.t") == NOW + timedelta(days=0.5)
    assert plan.next_check("silver.other") is None
