"""Snapshots of a table, as they are referred to."""

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.errors import SnapshotNotFound, UsageError
from lakehouse.iceberg.commit.publish_blocked import _prepared
from lakehouse.iceberg.diff.diff_plan import published_before, resolve_snapshot_ref
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import History, Snapshot

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def history(*parents: int | None, published: tuple[int, ...], **refs: int) -> History:
    """A table whose snapshots are numbered from 1, each with its parent, published an hour
    apart.
    """
    snapshots = {
        at: Snapshot(at, parent, 0, NOON, "append", {}) for at, parent in enumerate(parents, 1)
    }
    log = tuple((NOON + timedelta(hours=number), at) for number, at in enumerate(published))
    return History("t.t", snapshots, {"main": published[-1], **refs}, log, {})


THREE = history(None, 1, 2, published=(1, 3), monthly=1, **{"2": 3})


@pytest.mark.parametrize(
    ("ref", "snapshot_id"),
    [
        ("main", 3),
        ("monthly", 1),
        ("1", 1),
        (1, 1),
        ("2", 3),
        ("2024-01-01T12:30:00Z", 1),
        ("2024-01-01 20:30:00+08:00", 1),
        ("2024-01-01T14:00:00Z", 3),
    ],
)
def test_is_an_id_a_ref_or_a_moment(ref, snapshot_id):
    assert resolve_snapshot_ref(THREE, ref) == snapshot_id


@pytest.mark.parametrize(
    ("ref", "error", "said"),
    [
        ("7", SnapshotNotFound, "t.t has no snapshot 7; it keeps 3 snapshots"),
        (
            "gone",
            SnapshotNotFound,
            "has no tag or branch 'gone', and .* it has 2, main, monthly",
        ),
        ("2023-01-01T00:00:00Z", SnapshotNotFound, "its history starts at 2024-01-01T12:00:00"),
        (
            "2024-01-01",
            UsageError,
            "2024-01-01 has no time zone; expected one, such as 2024-01-01T00:00:00Z",
        ),
    ],
)
def test_that_is_not_there_is_named(ref, error, said):
    with pytest.raises(error, match=said):
        resolve_snapshot_ref(THREE, ref)


def test_before_a_snapshot_is_what_readers_saw_and_not_a_step_of_its_write():
    assert published_before(THREE, 3) == 1
    assert published_before(THREE, 1) is None


def test_before_a_snapshot_that_was_rolled_back_past_is_its_ancestor():
    assert published_before(history(None, 1, 1, published=(1, 2, 1, 3)), 3) == 1


def test_before_a_snapshot_may_have_expired():
    with pytest.raises(
        SnapshotNotFound, match=r"no longer keeps the snapshot before 1: 9 has expired"
    ):
        published_before(history(9, published=(1,)), 1)


def test_main_of_a_table_without_a_snapshot_is_none():
    assert resolve_snapshot_ref(History("t.t", {}, {}, (), {}), "main") is None


def test_a_run_prefix_of_several_blocked_candidates_is_rejected() -> None:
    of_runs = [CommitProperties("write", "w", run).to_summary() for run in ("a1", "a2")]
    snapshots = {n: Snapshot(n, None, 0, NOON, "append", of) for n, of in enumerate(of_runs)}
    blocked = History("t.t", snapshots, {"refused_1": 0, "refused_2": 1}, (), {})

    assert _prepared(blocked, "a1", timedelta(days=7))[0] == "refused_1"
    with pytest.raises(UsageError, match=r"more than one blocked candidate of run 'a'.*a1, a2"):
        _prepared(blocked, "a", timedelta(days=7))
