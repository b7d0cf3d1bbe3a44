"""What becomes of a file that bronze has, where the feed does not want it archived."""

from dataclasses import replace

from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.ingest import lock_feed
from lakehouse_tests.ingestion.conftest import FRUITS, files

ROW = "id,fruit,berry\n1,Apple,false\n"


def ingest(inbox) -> list[str]:
    """Take what waits and do with it what the feed says; the files that were taken."""
    with lock_feed(inbox.feed, inbox.store.root) as held:
        delivery = collect_files(inbox.store, held)
        assert archive_files(delivery, inbox.store).keys == ()
        return [file.source_file for file in delivery.files]


def test_a_file_is_deleted(inbox_of) -> None:
    inbox = inbox_of(replace(FRUITS, after="delete"))
    inbox.put("a.csv", ROW)
    assert ingest(inbox) == ["a.csv"]
    assert inbox.names() == []
    assert files(inbox.store, FRUITS.archive) == []


def test_a_file_that_is_left_is_not_taken_again(inbox_of) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW, second=1)
    assert ingest(inbox) == ["a.csv"]
    assert ingest(inbox) == []
    inbox.put("b.csv", ROW, second=2)
    assert ingest(inbox) == ["b.csv"]
    assert inbox.names() == ["a.csv", "b.csv"]


def test_a_file_that_is_left_and_overwritten_is_taken_again(inbox_of) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW)
    ingest(inbox)
    inbox.put("a.csv", ROW + "2,Pear,false\n")
    assert ingest(inbox) == ["a.csv"]
    assert ingest(inbox) == []


def test_without_the_note_files_are_only_read_again(inbox_of) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW)
    ingest(inbox)
    (inbox.store.root / "left" / "fruits.json").unlink()
    assert ingest(inbox) == ["a.csv"]


def test_what_is_gone_from_the_inbox_is_forgotten(inbox_of) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW, second=1)
    ingest(inbox)
    (inbox.store.root / FRUITS.inbox / "a.csv").unlink()
    inbox.put("b.csv", ROW, second=2)
    ingest(inbox)
    assert "a.csv" not in (inbox.store.root / "left" / "fruits.json").read_text()
