"""How much a table grew since its day began, by its snapshots."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.quality.metrics.run_metrics import midnight_of, rows_before

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def history(*rows: tuple[datetime, int], expired: bool = False) -> History:
    snapshots, before = {}, 0
    for at, (moment, total) in enumerate(rows, 1):
        summary = {"total-records": str(total), "added-records": str(total - before)}
        parent = (at - 1) or (99 if expired else None)
        snapshots[at] = Snapshot(at, parent, 0, moment, "append", summary)
        before = total
    log = tuple((moment, at) for at, (moment, _) in enumerate(rows, 1))
    return History("silver.fruits", snapshots, {"main": len(rows)}, log, {})


def test_it_is_counted_from_the_midnight_of_the_table():
    found = history(
        (MONDAY - timedelta(hours=6), 100), (MONDAY - timedelta(hours=3), 130), (MONDAY, 150)
    )
    at = MONDAY + timedelta(hours=1)

    assert rows_before(found, midnight_of(at, UTC)) == 150
    # It began on that day.
    assert rows_before(found, midnight_of(at - timedelta(hours=2), UTC)) == 0
    # In Kuala Lumpur Monday began at four in the afternoon of Sunday, UTC.
    assert rows_before(found, midnight_of(at, ZoneInfo("Asia/Kuala_Lumpur"))) == 0


def test_it_is_not_known_where_the_past_has_expired():
    kept = history((MONDAY + timedelta(hours=9), 40), expired=True)

    assert rows_before(kept, MONDAY) is None
