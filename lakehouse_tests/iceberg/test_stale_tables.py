"""What has yet to be computed is told by the tables' snapshots alone."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.iceberg.metadata.unchanged_watermarks import UNCHANGED_PROPERTY
from lakehouse.iceberg.read.stale_tables import has_news

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def history(table: str, *snapshots: Snapshot) -> History:
    """A linear history, whose last snapshot is main."""
    refs = {"main": snapshots[-1].snapshot_id} if snapshots else {}
    return History(table, {found.snapshot_id: found for found in snapshots}, refs, (), {})


def snapshot(
    number: int, operation: str = "append", added: int = 1, total: int = 1, **summary: str
) -> Snapshot:
    parent = number - 1 or None
    counted = {"added-records": str(added), "total-records": str(total), **summary}
    return Snapshot(number, parent, 0, NOW, operation, counted)


def computed_from(number: int) -> History:
    """A target that was last computed from snapshot `number` of the source."""
    stamp = CommitProperties("write", "w", inputs={"bronze.raw": number}).to_summary()
    return history("silver.clean", snapshot(1, **stamp))


@pytest.mark.parametrize(("noted_for", "expected"), [(2, 9), (3, 7)])
def test_a_note_of_what_changed_nothing_lapses_with_a_rollback(noted_for: int, expected: int):
    stamp = CommitProperties("write", "w", inputs={"bronze.raw": 7}).to_summary()
    target = history("silver.clean", snapshot(1), snapshot(2, **stamp))
    note = json.dumps({"snapshot": str(noted_for), "inputs": {"bronze.raw": "9"}})
    noted = replace(target, properties={UNCHANGED_PROPERTY: note})
    assert noted.watermark("bronze.raw") == expected


DELETED = ["deleted-records", "added-position-deletes", "added-equality-deletes"]


@pytest.mark.parametrize(
    ("snapshots", "read", "expected"),
    [
        pytest.param([snapshot(1)], None, True, id="never read"),
        pytest.param([], None, False, id="never read and empty"),
        pytest.param([snapshot(1, added=0, total=0)], None, False, id="never read, no rows"),
        pytest.param([snapshot(1)], 1, False, id="read"),
        pytest.param([snapshot(1), snapshot(2)], 1, True, id="appended"),
        *(
            pytest.param(
                [snapshot(1), snapshot(2, "delete", added=0, **{count: "1"})], 1, True, id=count
            )
            for count in DELETED
        ),
        pytest.param(
            [snapshot(1), snapshot(2, "replace", added=1), snapshot(3, added=0)],
            1,
            False,
            id="compacted and evolved",
        ),
        pytest.param([snapshot(1)], 2, True, id="rolled back"),
    ],
)
def test_a_source_has_news(snapshots: list[Snapshot], read: int | None, expected: bool):
    target = None if read is None else computed_from(read)
    assert has_news(history("bronze.raw", *snapshots), target) is expected
