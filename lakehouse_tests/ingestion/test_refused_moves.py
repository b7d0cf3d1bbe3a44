"""Files that their store refuses to move: those behind them go on, and the ingest says so."""

import hashlib
from pathlib import Path

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.ingest_attempt import lock_feed
from lakehouse.storage.object_store import LocalObjectStore, StoredObject
from lakehouse_tests.ingestion.conftest import FRUITS

ROW = "id,fruit,berry\n1,Apple,false\n"
OTHER = "id,fruit,berry\n2,Kiwi,true\n"


def collect(store, home: Path) -> Delivery:
    """Collect what waits, without archiving it."""
    with lock_feed(FRUITS, home) as ingest:
        return collect_files(store, ingest)


def ingest(store, home: Path) -> tuple[Delivery, tuple[str, ...]]:
    """Collect and archive what waits."""
    with lock_feed(FRUITS, home) as held:
        delivery = collect_files(store, held)
        return delivery, archive_files(delivery, store)


@pytest.fixture
def refusing(home: Path, monkeypatch) -> LocalObjectStore:
    """A folder that refuses to move what is called as refused, and a file before and behind
    it.
    """
    store, move = LocalObjectStore(home, settle_seconds=0), LocalObjectStore.move

    def refuse(self: LocalObjectStore, seen: StoredObject, key: str) -> bool:
        if "refused" in key:
            raise PermissionError(13, "Permission denied", key)
        return move(self, seen, key)

    monkeypatch.setattr(LocalObjectStore, "move", refuse)
    return store


def test_one_that_cannot_be_archived_stops_none_behind_it(
    refusing: LocalObjectStore, home: Path
) -> None:
    for name, text in (("1_refused.csv", ROW), ("2.csv", OTHER)):
        refusing.write_text(f"{FRUITS.inbox}{name}", text)

    with pytest.raises(LakehouseError, match=r"1_refused\.csv was not moved: .*denied"):
        ingest(refusing, home)

    assert [item.key for item in refusing.objects(FRUITS.inbox)] == [
        f"{FRUITS.inbox}1_refused.csv"
    ]
    digits = hashlib.sha256(OTHER.encode()).hexdigest()[:12]
    assert [Path(item.key).name for item in refusing.objects(FRUITS.archive)] == [
        f"2.{digits}.csv"
    ]


def test_one_that_cannot_be_rejected_stops_none_behind_it(
    refusing: LocalObjectStore, home: Path
) -> None:
    for name, text in (("1_refused.csv", "nonsense"), ("2.csv", ROW)):
        refusing.write_text(f"{FRUITS.inbox}{name}", text)

    delivery = collect(refusing, home)

    assert [file.source_file for file in delivery.files] == ["2.csv"]
    with pytest.raises(LakehouseError, match=r"1_refused\.csv was not moved: .*denied"):
        ingest(refusing, home)
    assert [item.key for item in refusing.objects(FRUITS.inbox)] == [
        f"{FRUITS.inbox}1_refused.csv"
    ]
