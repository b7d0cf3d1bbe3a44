"""When each step is due: compaction, branches, snapshots, manifests, orphans."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lakehouse.cli.tables.maintain import _print_plan
from lakehouse.iceberg.commit.branch import audit_branch
from lakehouse.iceberg.metadata.health_metrics import RefHealth, SnapshotPin, TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.upkeep.planner import Known, plan_upkeep
from lakehouse.upkeep.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.upkeep.upkeep_records import UpkeepRecord
from lakehouse_tests.upkeep.sick_tables import (
    MB,
    NOW,
    TARGET,
    day,
    days_ago,
    partition,
    planned,
    record,
    refused,
    step_of,
    table,
    write_id,
)

pytestmark = pytest.mark.unit


def work(step: PlannedStep) -> dict[str, Any]:
    """The arguments of a due step."""
    call: Any = step.work
    return call.keywords


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(("small", "large"), [(0, 9), (1, 0), (1, 60)])
def test_a_single_small_file_is_never_rewritten(small: int, large: int, by_name: bool) -> None:
    alone = partition(
        small=small, data_files=small + large, data_bytes=small * MB + large * TARGET, rows=100
    )
    assert not planned(table("silver.t", alone), "compact", by_name=by_name).is_due


def test_the_partitions_that_need_compaction_are_named() -> None:
    healthy = partition(0, small=1, data_files=4)
    step = planned(
        table("silver.t", healthy, partition(1, small=12)), "compact", sort_by=("a",)
    )
    assert step.partitions == (day(1),)
    assert step.reason == "1 partition with 12 small or delete files"
    assert (step.fewer_files, step.cost_bytes) == (11, 24 * MB)
    assert work(step) == {
        "table": "silver.t",
        "target_bytes": TARGET,
        "min_files": 2,
        "sort_by": ("a",),
        "z_order": False,
        "max_bytes": None,
    }


@pytest.mark.parametrize(
    ("minutes", "small", "due"), [(59, 12, False), (60, 12, True), (59, 20, True)]
)
def test_a_partition_that_was_just_written_waits_unless_it_has_many_files(
    minutes: int, small: int, due: bool
) -> None:
    written_at = NOW - timedelta(minutes=minutes)
    hot = table("silver.t", partition(small=small, newest_file_at=written_at))
    step = planned(hot, "compact")
    assert step.is_due is due
    assert planned(hot, "compact", by_name=True).is_due
    if not due:
        assert step.not_before == written_at + timedelta(hours=1)


@pytest.mark.parametrize(
    ("hours", "small", "due"), [(23, 4, False), (23, 5, True), (24, 2, True)]
)
def test_a_partition_at_rest_needs_fewer_small_files(hours: int, small: int, due: bool) -> None:
    written_at = NOW - timedelta(hours=hours)
    health = table("silver.t", partition(small=small, newest_file_at=written_at))
    assert planned(health, "compact").is_due is due
    assert planned(health, "compact", by_name=True).is_due


@pytest.mark.parametrize(
    ("deletes", "deleted_rows", "due"), [(1, 10, False), (5, 10, True), (1, 100, True)]
)
def test_many_delete_files_or_deleted_rows_are_compacted(
    deletes: int, deleted_rows: int, due: bool
) -> None:
    sick = partition(
        rows=1000,
        data_files=2,
        data_bytes=2 * TARGET,
        delete_files=deletes,
        deleted_rows=deleted_rows,
    )
    assert planned(table("silver.t", sick), "compact").is_due is due


def with_snapshots(*days: float, **parts: Any) -> TableHealth:
    return table(
        "silver.t", partition(small=1), snapshot_times=tuple(map(days_ago, days)), **parts
    )


OLD = (50, 45, 40, 35, 20, 10, 5, 4, 3)
"""Ages of snapshots in days; the first four are older than the policy."""


def branch(name: str, days: float) -> RefHealth:
    return RefHealth(name, True, 1, days_ago(days))


def watermark(days: float) -> SnapshotPin:
    return SnapshotPin("watermark of silver.fruits", 1, days_ago(days), needs_later=True)


@pytest.mark.parametrize(
    ("keep", "parts", "count", "older_than"),
    [
        (5, {}, 4, 30),
        (7, {}, 2, 30),
        (9, {}, 0, None),
        (5, {"pins": (watermark(45),)}, 1, 45),
        (5, {"pins": (watermark(50),)}, 0, None),
        (5, {"pins": (SnapshotPin("tag month_end", 1, days_ago(45)),)}, 3, 30),
        (1, {"refs": (branch("mine", 40),)}, 3, 30),
        (2, {"refs": (branch("mine", 40),)}, 2, 30),
    ],
)
def test_old_snapshots_expire_unless_a_reader_or_ref_needs_them(
    keep: int, parts: dict[str, Any], count: int, older_than: float | None
) -> None:
    step = planned(with_snapshots(*OLD, **parts), "expire_snapshots", keep_at_least=keep)
    assert (step.is_due, step.fewer_snapshots) == (count > 0, count)
    if older_than is not None:
        assert work(step)["older_than"] == days_ago(older_than)


def test_young_snapshots_wait_until_the_first_is_old() -> None:
    step = planned(with_snapshots(20, 10, 5, 4, 3, 2, 1), "expire_snapshots")
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=10))
    assert planned(with_snapshots(20, 10), "expire_snapshots").not_before is None


@pytest.mark.parametrize("with_all", [True, False])
def test_a_dry_run_names_the_reader_that_retains_snapshots(
    capsys: pytest.CaptureFixture[str], *, with_all: bool
) -> None:
    step = planned(with_snapshots(*OLD, pins=(watermark(50),)), "expire_snapshots")
    _print_plan(UpkeepPlan((step,)), "table", with_all=with_all)
    assert "for the watermark of silver.fruits needs that of" in capsys.readouterr().out


def audit(days: float) -> str:
    return audit_branch(write_id(days))


def test_branches_of_blocked_writes_are_dropped_after_their_retention() -> None:
    refs = (branch(refused(8), 8), branch(refused(6), 6), branch("mine", 99))
    health = table(refs=refs)
    step = planned(health, "drop_branches")
    assert step.is_due
    assert step.reason.startswith(
        f"1 stale branch: {refused(8)} (blocked ones of more than 7 days"
    )
    assert work(step)["blocked_before"] == days_ago(7)
    kept = planned(health, "drop_branches", refused_for=timedelta(days=9))
    assert (kept.is_due, kept.not_before) == (False, NOW + timedelta(days=1))


def test_the_branch_of_a_running_write_stays() -> None:
    running = table(refs=(branch(audit(0.1), 300),))
    assert not planned(running, "drop_branches", by_name=True).is_due
    assert planned(table(refs=(branch(audit(1.1), 300),)), "drop_branches").is_due


def test_snapshots_of_a_stale_branch_expire_in_the_same_run() -> None:
    stale = branch(refused(45), 45)
    pin = SnapshotPin(f"branch {refused(45)}", 1, days_ago(45), needs_later=True)
    health = with_snapshots(*OLD, refs=(stale,), pins=(pin,))
    plan = plan_upkeep([health], Known(), NOW)
    assert step_of(plan, "expire_snapshots").fewer_snapshots == 4
    order = [step.step for step in plan.due]
    assert order.index("drop_branches") < order.index("expire_snapshots")


@pytest.mark.parametrize(
    ("manifests", "size", "due"),
    [(20, 10_000, False), (21, 10_000, True), (40, 300_000_000, False)],
)
def test_many_needless_manifests_are_merged(manifests: int, size: int, due: bool) -> None:
    health = table("silver.t", partition(small=1), manifests=manifests, manifest_bytes=size)
    assert planned(health, "rewrite_manifests").is_due is due


def test_manifests_that_the_last_rewrite_could_not_merge_are_not_retried() -> None:
    health = table("silver.t", partition(small=1), manifests=40)
    before = record(
        "rewrite_manifests",
        health,
        3,
        metadata_location="other.json",
        step_metrics={"manifests_after": 25},
    )
    assert not planned(health, "rewrite_manifests", before).is_due
    assert planned(replace(health, manifests=45), "rewrite_manifests", before).is_due


LISTED = table("silver.t", partition(small=1), snapshot_times=(days_ago(8),))


@pytest.mark.parametrize(
    ("step", "health", "days"),
    [
        ("expire_snapshots", with_snapshots(*OLD), 1),
        ("remove_orphans", LISTED, 7),
    ],
)
def test_a_step_waits_for_its_interval_unless_a_user_names_the_table(
    step: StepName, health: TableHealth, days: int
) -> None:
    def done(days_ago: float) -> UpkeepRecord:
        return record(step, health, days_ago, metadata_location="other.json")

    assert planned(health, step).is_due
    waiting = planned(health, step, done(days / 2))
    assert (waiting.is_due, waiting.not_before) == (False, NOW + timedelta(days=days / 2))
    assert planned(health, step, done(days / 2), by_name=True).is_due
    assert planned(health, step, done(days)).is_due


def test_files_of_a_young_table_are_not_listed() -> None:
    health = table("silver.t", partition(small=1), snapshot_times=(days_ago(2),))
    step = planned(health, "remove_orphans")
    assert (step.is_due, step.not_before) == (False, NOW + timedelta(days=5))
    known = record("compact", health, 7)
    assert planned(health, "remove_orphans", known).is_due


def test_unchanged_files_are_listed_once_more_when_all_are_old_enough() -> None:
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
    assert step.reason.endswith(f" listed at {later:%Y-%m-%d %H:%M}Z")
