"""Staged rows in a bucket: one folder for an ingest, and no trace of it after its end."""

import hashlib
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.staging import staged_rows
from lakehouse.ingestion.staging.staged_rows import BucketStaging, open_staging
from lakehouse.storage.s3 import S3ObjectStore
from lakehouse_tests.ingestion.conftest import FRUITS

pytestmark = pytest.mark.unit

APPLE = "id,fruit,berry\n1,Apple,false\n"
OF_ANOTHER = "staging/fruits/0123456789ab/20261125T093853.974097Z/0.parquet"


@pytest.fixture
def bucket(aws_settings) -> BucketStaging:
    staging = open_staging(aws_settings)
    assert staging
    return staging


@pytest.fixture(params=["Enabled", None])
def versioning(request, bucket) -> None:
    if request.param:
        bucket.store.client.put_bucket_versioning(
            Bucket=bucket.store.bucket, VersioningConfiguration={"Status": request.param}
        )


def keys(bucket: BucketStaging) -> list[str]:
    return [version.key for version in bucket.store.all_versions("staging/")]


def test_the_rows_of_all_files_are_in_one_folder(home, inbox, bucket) -> None:
    for name in ("a.csv", "b.csv"):
        inbox.put(name, APPLE, second=ord(name[0]))
    sha256 = hashlib.sha256(APPLE.encode()).hexdigest()

    with lock_feed(FRUITS, home, bucket=bucket) as ingest:
        collect_files(inbox.store, ingest)
        folder = f"{bucket.own_prefix('fruits')}{ingest.staging.name}/"
        assert keys(bucket) == [f"{folder}{sha256}-{number:06}.parquet" for number in (0, 1)]
        assert [path for path in ingest.staging.rglob("*") if path.is_file()] == []


def test_a_file_that_changed_while_it_was_read_leaves_no_rows(
    home, inbox, bucket, versioning, monkeypatch
) -> None:
    path = inbox.put("a.csv", APPLE)

    with lock_feed(FRUITS, home, bucket=bucket) as ingest:
        put = type(ingest.rows).put

        def put_and_change(rows, file, name) -> None:
            put(rows, file, name)
            path.write_text(APPLE * 2)

        monkeypatch.setattr(type(ingest.rows), "put", put_and_change)
        delivery = collect_files(inbox.store, ingest)
        assert (list(delivery.unsettled), keys(bucket)) == ([f"{FRUITS.inbox}a.csv"], [])


@pytest.mark.parametrize("error", [None, ValueError])
def test_they_go_however_the_ingest_ends(home, inbox, bucket, versioning, error) -> None:
    inbox.put("a.csv", APPLE)
    try:
        with lock_feed(FRUITS, home, bucket=bucket) as ingest:
            collect_files(inbox.store, ingest)
            assert len(keys(bucket)) == 1
            if error:
                raise error
    except ValueError:
        pass

    assert keys(bucket) == []


@pytest.mark.parametrize("error", [None, ValueError])
def test_where_they_cannot_be_removed_it_is_warned_of(
    home, inbox, bucket, monkeypatch, caplog, error
) -> None:
    """What landed stays landed, and what went wrong is said."""

    def refuse(*_: object) -> None:
        raise LakehouseError("AccessDenied", next_step="Ask.")

    inbox.put("a.csv", APPLE)
    monkeypatch.setattr(S3ObjectStore, "all_versions", refuse)
    expected = pytest.raises(error) if error else nullcontext()
    with expected, lock_feed(FRUITS, home, bucket=bucket) as ingest:
        collect_files(inbox.store, ingest)
        if error:
            raise error

    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert f"Rows staged in {ingest.rows.uri} were not removed" in caplog.text
    assert "the permissions: AccessDenied" in caplog.text


def test_homes_of_one_name_and_path_on_two_machines_are_two_writers(aws_settings) -> None:
    first = open_staging(aws_settings)
    assert open_staging(aws_settings) == first

    aws_settings.home.rename(aws_settings.home.with_name("elsewhere"))

    second = open_staging(aws_settings)
    assert first and second
    assert first.own_prefix("fruits") != second.own_prefix("fruits")


def test_those_of_a_killed_ingest_go_with_the_next(
    home, bucket, versioning, tmp_path: Path
) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b"rows")
    bucket.rows("fruits", "20261125T093853.974097Z").put(file, "0.parquet")
    client, name = bucket.store.client, bucket.store.bucket
    upload = {"Bucket": name, "Key": f"{bucket.own_prefix('fruits')}1/1.parquet"}
    client.create_multipart_upload(**upload)

    with lock_feed(FRUITS, home, bucket=bucket):
        assert keys(bucket) == []
        assert "Uploads" not in client.list_multipart_uploads(Bucket=name)


def test_those_of_another_host_go_when_they_are_a_day_old(home, bucket, monkeypatch) -> None:
    bucket.store.write_text(OF_ANOTHER, "rows")
    with lock_feed(FRUITS, home, bucket=bucket):
        pass
    assert keys(bucket) == [OF_ANOTHER]

    monkeypatch.setattr(staged_rows, "LEFT_AFTER", timedelta(seconds=-2))
    with lock_feed(FRUITS, home, bucket=bucket):
        assert keys(bucket) == []
