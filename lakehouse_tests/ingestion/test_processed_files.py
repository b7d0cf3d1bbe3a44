"""What becomes of a file that bronze has, where the feed does not want it archived."""

from dataclasses import replace

import pytest

from lakehouse.errors import UsageError
from lakehouse.ingestion.ad_hoc_files import AdHocStore
from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.delivery_decisions import reject
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse_tests.ingestion.conftest import FRUITS, Inbox, files

ROW = "id,fruit,berry\n1,Apple,false\n"


def ingest(inbox, base: LocalObjectStore | None = None) -> list[str]:
    home = (base or inbox.store).root
    with lock_feed(inbox.feed, home) as held:
        delivery = collect_files(inbox.store, held)
        assert archive_files(delivery, inbox.store) == ()
        return [file.source_file for file in delivery.files]


def test_a_file_is_deleted(inbox_of) -> None:
    inbox = inbox_of(replace(FRUITS, after="delete"))
    inbox.put("a.csv", ROW)
    assert ingest(inbox) == ["a.csv"]
    assert inbox.names() == []
    assert files(inbox.store, FRUITS.archive) == []


def test_a_file_that_is_left_is_taken_again_only_when_it_was_overwritten(inbox_of) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW, second=1)
    assert ingest(inbox) == ["a.csv"]
    assert ingest(inbox) == []
    inbox.put("b.csv", ROW, second=2)
    assert ingest(inbox) == ["b.csv"]
    assert inbox.names() == ["a.csv", "b.csv"]
    inbox.put("a.csv", ROW + "2,Pear,false\n")
    assert ingest(inbox) == ["a.csv"]
    assert ingest(inbox) == []


def test_what_is_gone_from_the_inbox_is_forgotten_and_a_lost_note_costs_a_read(
    inbox_of,
) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW, second=1)
    ingest(inbox)
    (inbox.store.root / FRUITS.inbox / "a.csv").unlink()
    inbox.put("b.csv", ROW, second=2)
    ingest(inbox)
    note = inbox.store.root / "left" / "fruits.json"
    assert "a.csv" not in note.read_text()
    note.unlink()
    assert ingest(inbox) == ["b.csv"]


def test_files_that_a_person_names_do_not_make_those_that_are_left_be_taken_again(
    inbox_of, tmp_path
) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW)
    ingest(inbox)
    copies = Inbox(LocalObjectStore(tmp_path / "copies", settle_seconds=0), inbox.feed)
    copies.put("b.csv", ROW)

    named = replace(inbox, store=AdHocStore(inbox.store, copies.store, inbox.feed.inbox))
    assert ingest(named, inbox.store) == ["b.csv"]

    assert ingest(inbox) == []


def test_a_file_that_is_left_is_moved_away_before_its_delivery_is_rejected(
    inbox_of, settings
) -> None:
    inbox = inbox_of(replace(FRUITS, after="leave"))
    inbox.put("a.csv", ROW)

    with pytest.raises(UsageError, match=r"a\.csv in the inbox.*Move the file out"):
        reject(settings, None, inbox.feed, [], "a.csv", by="x", why="y")
