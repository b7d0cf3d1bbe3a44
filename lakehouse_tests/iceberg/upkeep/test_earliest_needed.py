"""What holds expiry back: each pin, and with it what came after a watermark; no JVM."""

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.iceberg.metadata.health_metrics import SnapshotPin
from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.iceberg.upkeep.expire_snapshots import earliest_needed

NOW = datetime(2024, 6, 30, tzinfo=UTC)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def history(*ages: float) -> History:
    """Return a main of snapshots 1, 2, …, of these ages in days; the first is tagged `old`."""
    snapshots = {}
    for number, age in enumerate(ages, 1):
        parent_id = number - 1 or None
        snapshots[number] = Snapshot(number, parent_id, 0, days_ago(age), "append", {})
    refs = {"main": len(ages), "old": 1}
    return History("silver.sick", snapshots, refs, log=(), properties={})


@pytest.mark.parametrize(
    ("pins", "moment", "owners"),
    [
        ((), days_ago(30), ()),
        # Iceberg keeps the snapshot of a tag, and those before and after it may go.
        ((SnapshotPin("tag old", 1, days_ago(60)),), days_ago(30), ()),
        (
            (SnapshotPin("restore point r", 2, days_ago(50)),),
            days_ago(50),
            ("restore point r",),
        ),
        (
            (
                SnapshotPin("watermark of gold.a", 2, days_ago(50), needs_later=True),
                SnapshotPin("watermark of gold.b", 3, days_ago(40), needs_later=True),
            ),
            days_ago(50),
            ("watermark of gold.a",),
        ),
        # A reader at the head of a tag needs what came after it, which the tag does not keep.
        (
            (SnapshotPin("watermark of gold.a", 1, days_ago(60), needs_later=True),),
            days_ago(60),
            ("watermark of gold.a",),
        ),
        (
            (SnapshotPin("watermark of gold.a", 4, days_ago(1), needs_later=True),),
            days_ago(30),
            (),
        ),
    ],
)
def test_expiry_goes_back_to_the_first_that_is_needed(
    pins: tuple[SnapshotPin, ...], moment: datetime, owners: tuple[str, ...]
) -> None:
    found = earliest_needed(history(60, 50, 40, 1), days_ago(30), pins)

    assert found == (moment, owners)


def test_a_commit_that_was_staged_long_before_it_was_published_counts() -> None:
    staged_early = history(60, 40, 45, 1)
    pin = SnapshotPin("watermark of gold.a", 2, days_ago(40), needs_later=True)

    moment, _ = earliest_needed(staged_early, days_ago(30), [pin])

    assert moment == days_ago(45)
