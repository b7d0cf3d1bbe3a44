"""Which files are taken, in which order, and which are left for the next time."""

import os
import sys
import time

import pytest

from lakehouse.ingestion.collect import collect_files, list_waiting, list_waiting_now
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.tables.feed import Feed
from lakehouse_tests.ingestion.conftest import FRUITS, Inbox

ROW = "id,fruit,berry\n1,Apple,false\n"


def test_files_are_taken_by_time_and_those_of_one_moment_by_name(inbox) -> None:
    inbox.put("0.csv", ROW, second=3)
    for name in ("b.csv", "a.csv", "B.csv", "ä.csv", "10.csv", "9.csv"):
        inbox.put(name, ROW, second=1)

    taken = [file.source_file for file in inbox.look().delivery.files]

    assert taken == ["10.csv", "9.csv", "B.csv", "a.csv", "b.csv", "ä.csv", "0.csv"]


@pytest.mark.parametrize(
    "name",
    [".hidden.csv", "a.csv.tmp", "a.csv.part", "a.csv.crdownload", "a.csv~", "a.csv.filepart", "A.CSV.TMP", "_SUCCESS",
     "~$a.csv", ".rsync/a.csv", "_temporary/0/a.csv", "upload.part/a.csv", "day_$folder$"],
)  # fmt: skip
def test_what_is_hidden_unfinished_or_a_marker_stays(inbox, name: str) -> None:
    inbox.put(name, "anything")

    taken = inbox.look()

    assert (taken.delivery.files, taken.delivery.rejected) == ((), ())
    assert inbox.names() == [name]


def test_a_file_in_a_sub_folder_is_known_by_its_path_in_the_inbox(inbox) -> None:
    inbox.put("2026/01/fruit.csv", ROW)

    assert inbox.look().values("_source_file") == [("2026/01/fruit.csv",)]


def test_no_more_than_max_files_per_run_are_taken_from_the_front(inbox_of) -> None:
    inbox = inbox_of(Feed("fruits", FRUITS.columns, FRUITS.table, max_files_per_run=2))
    for number in range(5):
        inbox.put(f"{number}.csv", ROW, second=number)

    delivery = inbox.look().delivery

    assert [file.source_file for file in delivery.files] == ["0.csv", "1.csv"]
    assert delivery.waiting == 3


def test_a_file_that_grows_is_left(home, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox(LocalObjectStore(home, settle_seconds=60), FRUITS)
    done = inbox.put("done.csv", ROW, second=0)
    growing = inbox.put("growing.csv", "id,fruit,berry\n1,App")
    monkeypatch.setattr(
        "lakehouse.ingestion.collect.time.sleep", lambda _: growing.write_text(ROW)
    )

    found = list_waiting(FRUITS, inbox.store)

    assert [file.key for file in found.files] == [f"inbox/fruits/{done.name}"]
    assert found.unsettled == ("inbox/fruits/growing.csv",)


def test_a_young_file_is_waited_for_until_it_is_old_enough(
    home, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox(LocalObjectStore(home, settle_seconds=30), FRUITS)
    os.utime(inbox.put("young.csv", ROW), (time.time() - 20,) * 2)
    slept: list[float] = []
    monkeypatch.setattr("lakehouse.ingestion.collect.time.sleep", slept.append)

    assert len(list_waiting(FRUITS, inbox.store).files) == 1
    (seconds,) = slept
    assert 0 < seconds <= 10


class _Untold(LocalObjectStore):
    def is_being_written(self, key: str) -> None:
        del key


def test_a_young_file_stands_still_for_longer_where_nobody_tells_who_writes_it(
    home, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox(_Untold(home), FRUITS)
    os.utime(inbox.put("young.csv", ROW), (time.time() - 2,) * 2)
    inbox.put("old.csv", ROW, second=0)
    slept: list[float] = []
    monkeypatch.setattr("lakehouse.ingestion.collect.time.sleep", slept.append)

    now = list_waiting_now(FRUITS, inbox.store)
    assert [file.key for file in now.files] == ["inbox/fruits/old.csv"]
    assert now.unsettled == ("inbox/fruits/young.csv",)
    assert len(list_waiting(FRUITS, inbox.store).files) == 2
    (seconds,) = slept
    assert 0 < seconds <= 3


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who has a file open")
def test_a_file_that_stands_still_and_is_open_to_be_written_waits(home) -> None:
    """As where the network of its sender stops for a while: the rest would be in no table."""
    inbox = Inbox(LocalObjectStore(home, settle_seconds=0), FRUITS)
    path = inbox.put("slow.csv", ROW, second=1)
    inbox.put("whole.csv", ROW, second=2)

    with path.open("a") as sender:
        for look in (list_waiting, list_waiting_now):
            waiting = look(FRUITS, inbox.store)
            assert [file.key for file in waiting.files] == ["inbox/fruits/whole.csv"]
            assert waiting.unsettled == ("inbox/fruits/slow.csv",)
        sender.write("2,Fig,false\n")

    with path.open():
        assert len(list_waiting(FRUITS, inbox.store).files) == 2


class _Meddling(LocalObjectStore):
    def open(self, key: str):
        opened = super().open(key)
        self._path(key).write_text("id,fruit,berry\n1,Kiwi,true\n2,Fig,false\n")
        return opened


@pytest.mark.parametrize("content", [ROW, "id,fruit,berry\n1\n", "1,2,3"])
def test_a_file_that_changes_while_it_is_read_is_left_whatever_was_read(
    home, content: str
) -> None:
    inbox = Inbox(_Meddling(home, settle_seconds=0), FRUITS)
    inbox.put("a.csv", content, second=0)

    delivery = inbox.look().delivery

    assert (delivery.files, delivery.rejected) == ((), ())
    assert delivery.unsettled == ("inbox/fruits/a.csv",)
    assert inbox.names() == ["a.csv"]


class _Vanishing(LocalObjectStore):
    def open(self, key: str):
        self._path(key).unlink()
        return super().open(key)


def test_a_file_that_goes_away_stops_nobody(home) -> None:
    inbox = Inbox(_Vanishing(home, settle_seconds=0), FRUITS)
    inbox.put("a.csv", ROW)

    assert inbox.look().delivery.files == ()


def test_an_error_of_the_system_leaves_the_file_where_it_is(inbox, monkeypatch) -> None:
    inbox.put("a.csv", ROW)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", full)
    with pytest.raises(OSError, match="No space left"):
        inbox.look()

    assert inbox.names() == ["a.csv"]


class _Interrupted(LocalObjectStore):
    def open(self, key: str):
        if key.endswith("small.csv"):
            raise KeyboardInterrupt
        return super().open(key)


def test_an_interrupt_stops_all_files_and_leaves_them_in_the_inbox(home) -> None:
    inbox = Inbox(_Interrupted(home, settle_seconds=0), FRUITS)
    inbox.put("big.csv", "id,fruit,berry\n" + "1,Apple,false\n" * 1_000_000, second=1)
    inbox.put("small.csv", ROW, second=2)

    with lock_feed(inbox.feed, home) as ingest:
        with pytest.raises(KeyboardInterrupt):
            collect_files(inbox.store, ingest)
        assert list((ingest.staging / "rows").iterdir()) == []

    assert inbox.names() == ["big.csv", "small.csv"]
