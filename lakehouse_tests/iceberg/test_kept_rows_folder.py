"""Who removes rows that were kept on a cluster, and when."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.iceberg.write.kept_rows import KeptRowsFolder, list_folders, remove_left
from lakehouse.settings import Settings
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.s3 import open_bucket
from lakehouse_tests.conftest import keep_versions

pytestmark = pytest.mark.unit


@pytest.fixture
def store(home: Path) -> LocalObjectStore:
    return LocalObjectStore(home)


@pytest.fixture
def folder(store: LocalObjectStore, settings: Settings) -> KeptRowsFolder:
    return KeptRowsFolder.new(store, settings.lock_dir)


def put(folder: KeptRowsFolder) -> None:
    for name in ("part-0.parquet", "_SUCCESS", ".part-0.parquet.crc", "_temporary/0/part-1"):
        folder.store.write_text(f"{folder.prefix}1/{name}", "rows")


def files(store: ObjectStore) -> int:
    return len([*store.objects("staging/"), *store.unfinished("staging/")])


def aged(folder: KeptRowsFolder, age: timedelta) -> KeptRowsFolder:
    moment = (datetime.now(UTC) - age).strftime("%Y%m%dT%H%M%SZ")
    return KeptRowsFolder(folder.store, folder.lock_dir, f"{moment}-0123456789abcdef")


def test_what_is_in_use_stays_and_what_was_left_goes(store, folder):
    with folder.locked():
        put(folder)
        remove_left(store, folder.lock_dir)
        assert files(store) == 4

    remove_left(store, folder.lock_dir)

    assert not (store.root / "staging" / "kept-rows" / folder.name).exists()


def test_what_a_server_writes_after_its_client_was_killed_goes_too(store, folder):
    with folder.locked():
        put(folder)
    remove_left(store, folder.lock_dir)
    put(folder)

    remove_left(store, folder.lock_dir)

    assert files(store) == 0
    assert folder.lock_file.exists()


def test_of_another_host_it_stays_for_a_week(store, folder):
    young, old = aged(folder, timedelta(days=6)), aged(folder, timedelta(days=8))
    put(young)
    put(old)

    remove_left(store, folder.lock_dir)

    assert list_folders(store, folder.lock_dir) == [young]
    assert not young.lock_file.exists()


def test_a_bucket_keeps_no_version_of_it(aws_settings):
    store = open_bucket(aws_settings)
    keep_versions(store)
    folder = KeptRowsFolder.new(store, aws_settings.lock_dir)
    put(folder)
    put(folder)
    store.client.put_object(Bucket=store.bucket, Key=f"{folder.prefix}1/", Body=b"")
    store.write_text("staging/fruits/a.parquet", "of another")

    assert folder.try_to_remove()

    left = store.client.list_object_versions(Bucket=store.bucket)
    assert [version["Key"] for version in left["Versions"]] == ["staging/fruits/a.parquet"]
    assert "DeleteMarkers" not in left


def test_where_the_bucket_cannot_be_listed_a_write_goes_on(store, folder, caplog, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError("denied")

    monkeypatch.setattr(LocalObjectStore, "remains", refuse)
    remove_left(store, folder.lock_dir)

    assert "the next write tries again: denied" in caplog.text
