"""One ingest of a feed at a time, each later than the last, and no trace of those that died."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.errors import TableBusy
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse_tests.ingestion.conftest import CUSTOMERS, FRUITS

HOLD = """
import sys, time
from pathlib import Path
from lakehouse.tables.feed import Feed
from lakehouse.ingestion.feed_lock import lock_feed

with lock_feed(Feed("fruits", ["id"], "bronze.raw_fruits"), Path(sys.argv[1])) as ingest:
    (ingest.staging / "rows" / "some.parquet").touch()
    print(ingest.staging.name, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(home):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)], stdout=subprocess.PIPE, text=True
    ) as process:
        process.id = process.stdout.readline().strip()
        yield process
        process.kill()


def test_a_second_ingest_of_the_feed_waits_and_says_why(home, other) -> None:
    said = "Feed fruits is being ingested by another process"

    with pytest.raises(TableBusy, match=said), lock_feed(FRUITS, home, wait_seconds=0.1):
        pass


def test_another_feed_is_not_held(home, other) -> None:
    with lock_feed(CUSTOMERS, home, wait_seconds=0.1):
        pass


def test_a_killed_ingest_holds_nobody_and_its_staging_goes(home, other) -> None:
    dead = home / "staging" / "fruits" / other.id
    assert dead.exists()
    other.kill()
    assert other.wait() == -9

    with lock_feed(FRUITS, home, wait_seconds=5) as ingest:
        assert ingest.staging.name > other.id
        assert not dead.exists()


@pytest.mark.parametrize("error", [None, ValueError])
def test_its_staging_goes_however_it_ends(home, error) -> None:
    try:
        with lock_feed(FRUITS, home) as ingest:
            assert (ingest.staging / "rows").is_dir()
            if error:
                raise error
    except ValueError:
        pass

    assert not ingest.staging.exists()


def test_the_moments_of_ingests_rise_also_when_the_clock_goes_back(home) -> None:
    ahead = datetime.now(UTC) + timedelta(days=1)
    clock = home / "staging" / "fruits" / "last_ingest"
    clock.parent.mkdir(parents=True)
    clock.write_text(ahead.isoformat())
    with lock_feed(FRUITS, home) as first:
        pass
    with lock_feed(FRUITS, home) as second:
        pass

    assert first.started_at == ahead + timedelta(microseconds=1)
    assert second.started_at == first.started_at + timedelta(microseconds=1)
    assert second.staging.name > first.staging.name
