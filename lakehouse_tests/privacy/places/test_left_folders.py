"""What dead processes left goes as a whole; what living ones work on is said."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.iceberg.write.kept_rows import KeptRowsFolder
from lakehouse.ingestion.feed_lock import feed_lock
from lakehouse.privacy.places.left_folders import remove_left_folders, wait_for_spark
from lakehouse.settings import Settings
from lakehouse.spark.spark_folders import temporary_folder
from lakehouse.storage.stores import open_store
from lakehouse_tests.privacy.places.a_person import EMAIL

pytestmark = pytest.mark.unit

ROWS = "blockmgr-1/0c/shuffle_1_3_0.data"
STAGED = "20261125T093853.974097Z/rows/_source_sha256=0/000000.parquet"


def remove(settings: Settings, *, is_dry: bool = False) -> list[tuple[str, str, int]]:
    places = remove_left_folders(settings, is_dry=is_dry)
    return [(place.place, place.outcome, place.files) for place in places]


def put(folder: Path, name: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(EMAIL, encoding="utf-8")
    return file


def test_what_a_dead_spark_spilled_goes(settings):
    process = temporary_folder(settings).name.rpartition("-")[0]
    folder = settings.home / "tmp" / f"{process}-1"
    put(folder, ROWS)

    assert remove(settings) == [(f"tmp/{folder.name}", "removed", 1)]
    assert not folder.exists()
    assert remove(settings) == []


def test_what_a_living_spark_works_on_is_its_own(settings):
    folder = temporary_folder(settings)
    spilled = put(folder, ROWS)
    put(folder, "libsnappyjava.so")
    put(folder, "userFiles-1/lakehouse-0123456789abcdef.zip")
    put(folder, "artifacts/1/pyfiles/project-0123456789abcdef.zip")

    assert remove(settings) == [(f"tmp/{folder.name}", "busy", 1)]
    assert spilled.exists()


def test_what_a_living_spark_wrote_since_they_are_gone_is_without_them(settings):
    folder = temporary_folder(settings)
    os.utime(put(folder, ROWS), (1000, 1000))
    put(folder, f"{ROWS}.later")
    hours_ago, before = datetime.now(UTC) - timedelta(hours=1), datetime.fromtimestamp(999, UTC)

    (busy,) = remove_left_folders(settings, hours_ago, is_dry=False)

    assert (busy.outcome, busy.files) == ("busy", 1)
    assert list(remove_left_folders(settings, before, is_dry=False)) == []


def test_what_a_dead_ingest_staged_goes_and_the_clock_of_the_feed_stays(settings):
    folder = settings.home / "staging" / "fruits"
    staged = put(folder, STAGED)
    clock = put(folder, "last_ingest")

    assert remove(settings) == [("staging/fruits", "removed", 1)]
    assert not staged.exists()
    assert clock.exists()
    assert remove(settings) == []


def test_what_is_being_ingested_is_left(settings):
    staged = put(settings.home / "staging" / "fruits", STAGED)

    with feed_lock("fruits", settings.home, 0):
        assert remove(settings) == [("staging/fruits", "busy", 1)]

    assert staged.exists()


def test_what_a_dead_write_kept_on_a_cluster_goes(settings):
    folder = KeptRowsFolder.new(open_store(settings), settings.lock_dir)
    with folder.locked():
        put(settings.home / folder.prefix, "1/part-0.parquet")
        assert remove(settings) == [(folder.prefix.rstrip("/"), "busy", 1)]
        began_later = folder.begun_at - timedelta(seconds=1)
        assert list(remove_left_folders(settings, began_later, is_dry=False)) == []

    assert remove(settings, is_dry=True) == [(folder.prefix.rstrip("/"), "removed", 1)]
    assert remove(settings) == [(folder.prefix.rstrip("/"), "removed", 1)]
    assert remove(settings) == []


def test_copies_of_named_files_go_when_nobody_can_be_at_them(settings):
    folder = settings.home / ".ad-hoc-x1"
    copy = put(folder, "inbox/fruits/a.csv")
    assert remove(settings) == [(".ad-hoc-x1", "busy", 1)]

    for path in (copy, folder):
        an_hour_ago = time.time() - 3700
        os.utime(path, (an_hour_ago, an_hour_ago))

    assert remove(settings) == [(".ad-hoc-x1", "removed", 1)]
    assert not folder.exists()


def test_spark_is_asked_to_let_go_until_it_has(settings):
    now = datetime.now(UTC) + timedelta(seconds=1)
    spilled = put(temporary_folder(settings), ROWS)
    asked = []

    def collect_garbage() -> None:
        asked.append(None)
        if len(asked) == 2:
            spilled.unlink()

    wait_for_spark(settings, now, collect_garbage)

    assert len(asked) == 2
    wait_for_spark(settings, now, collect_garbage)
    assert len(asked) == 2
