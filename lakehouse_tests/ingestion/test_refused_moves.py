"""Files that their store refuses to move: those behind them go on, and the ingest says so."""

import hashlib
from pathlib import Path

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.delivery import Archived, Delivery
from lakehouse.ingestion.ingest import lock_feed
from lakehouse.storage.object_store import LocalObjectStore, StoredObject
from lakehouse.storage.s3 import S3ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse_tests.ingestion.conftest import FRUITS

ROW = "id,fruit,berry\n1,Apple,false\n"
OTHER = "id,fruit,berry\n2,Kiwi,true\n"
_LONGEST_KEY_BYTES = 1024


@pytest.fixture
def bucket(aws_settings) -> S3ObjectStore:
    """A bucket that refuses keys that are too long, as S3 does, which moto does not for all
    requests.
    """
    bucket = open_store(aws_settings)
    bucket.client.meta.events.register("before-parameter-build.s3", _refuse_long_keys)
    yield bucket
    bucket.client.meta.events.unregister("before-parameter-build.s3", _refuse_long_keys)


def _refuse_long_keys(params, model, **_: object) -> None:
    from botocore.exceptions import ClientError

    if len(params.get("Key", "").encode()) > _LONGEST_KEY_BYTES:
        code = "400" if model.name == "HeadObject" else "KeyTooLongError"
        raise ClientError({"Error": {"Code": code}}, model.name)


def collect(store, home: Path) -> Delivery:
    """Collect what waits, without archiving it."""
    with lock_feed(FRUITS, home) as ingest:
        return collect_files(store, ingest)


def ingest(store, home: Path) -> tuple[Delivery, Archived]:
    """Collect and archive what waits."""
    with lock_feed(FRUITS, home) as held:
        delivery = collect_files(store, held)
        return delivery, archive_files(delivery, store)


def long_key(name: str) -> str:
    """A key of 1,000 bytes in the inbox."""
    folders = "a/" * 500
    return f"{FRUITS.inbox}{folders}"[: 1000 - len(name) - 1].rstrip("/") + f"/{name}"


@pytest.mark.long
def test_a_long_key_is_archived_or_rejected_and_stops_none_behind_it(
    bucket: S3ObjectStore, home: Path
) -> None:
    for name, text in (("good.csv", ROW), ("bad.csv", "nonsense")):
        assert len(long_key(name)) in (999, 1000)
        bucket.write_text(long_key(name), text)
    bucket.write_text(f"{FRUITS.inbox}behind.csv", OTHER)
    bucket.write_text(f"{FRUITS.inbox}behind_bad.csv", "other nonsense")

    delivery, archived = ingest(bucket, home)

    assert [Path(file.source_file).name for file in delivery.files] == [
        "good.csv",
        "behind.csv",
    ]
    assert [Path(file.source_file).name for file in delivery.rejected] == [
        "bad.csv",
        "behind_bad.csv",
    ]
    assert len(archived.keys) == 2
    assert "/long/" in archived.keys[0]
    assert bucket.open(archived.keys[0]).read() == ROW.encode()
    assert bucket.objects(FRUITS.inbox) == []


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
