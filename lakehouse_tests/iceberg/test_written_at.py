"""When rows were last written, of histories as values."""

from datetime import UTC, datetime

import pytest

from lakehouse.iceberg.metadata.snapshots import MAIN, History, Snapshot
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery

pytestmark = pytest.mark.unit
REJECTION = RejectedDelivery("a.csv", "e" * 64).to_summary(by="somebody", why="why")
APPEND = ("append", {})
DELETE = ("overwrite", {})
REJECT = ("overwrite", REJECTION)
UPKEEP = ("replace", {})


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def history(*commits: tuple[str, dict[str, str]], expired: int = 0) -> History:
    """The commits of one day each, of which the first are not kept any more."""
    snapshots = {
        number: Snapshot(number, number - 1 or None, None, day(number), operation, summary)
        for number, (operation, summary) in enumerate(commits, start=1)
        if number > expired
    }
    log = tuple((day(number), number) for number in snapshots)
    return History("bronze.events", snapshots, {MAIN: len(commits)}, log, {})


def test_rows_that_were_only_taken_out_are_none_that_were_written():
    assert history(APPEND, REJECT, UPKEEP, REJECT).written_at == day(1)
    assert history(APPEND, REJECT, APPEND).written_at == day(3)
    # What others delete may be a part of what they write.
    assert history(APPEND, DELETE).written_at == day(2)


def test_where_no_write_is_kept_it_was_before_the_oldest_rejection():
    assert history(APPEND, REJECT, UPKEEP, REJECT, expired=1).written_at == day(2)
    assert history(APPEND, UPKEEP, expired=1).written_at is None
    assert history().written_at is None
