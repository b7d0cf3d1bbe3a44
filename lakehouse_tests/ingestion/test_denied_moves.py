"""Files that their store refuses to move: those behind them go on, and the ingest says so."""

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import StoredObject
from lakehouse_tests.ingestion.conftest import FRUITS, files

ROW = "id,fruit,berry\n1,Apple,false\n"


@pytest.mark.parametrize("content", ["id,fruit,berry\n2,Kiwi,true\n", "nonsense"])
def test_one_that_cannot_be_archived_or_rejected_stops_none_behind_it(
    inbox, monkeypatch, content: str
) -> None:
    move = LocalObjectStore.move

    def refuse(self: LocalObjectStore, seen: StoredObject, key: str) -> bool:
        if "refused" in key:
            raise PermissionError(13, "Permission denied", key)
        return move(self, seen, key)

    monkeypatch.setattr(LocalObjectStore, "move", refuse)
    inbox.put("1_refused.csv", content, second=1)
    inbox.put("2.csv", ROW, second=2)

    with lock_feed(FRUITS, inbox.store.root) as ingest:
        delivery = collect_files(inbox.store, ingest)
        with pytest.raises(LakehouseError, match=r"1_refused\.csv was not moved: .*denied"):
            archive_files(delivery, inbox.store)

    assert inbox.names() == ["1_refused.csv"]
    (archived,) = files(inbox.store, FRUITS.archive)
    assert "/2." in archived
