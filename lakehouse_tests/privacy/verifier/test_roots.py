"""All files of a folder or bucket are read; an unreadable one is a gap."""

import io
import os
import sqlite3
from contextlib import closing

import boto3
import pytest
from moto import mock_aws

from lakehouse.privacy.verifier.file_part import FilePart
from lakehouse.privacy.verifier.roots import BucketRoot, FolderRoot
from lakehouse.privacy.verifier.search import by_values, search
from lakehouse_tests.conftest import keep_versions
from lakehouse_tests.privacy.verifier.someone import (
    COLUMNS,
    EMAIL,
    PERSON,
    PHONE,
    searched,
    written,
)

pytestmark = pytest.mark.unit


def gaps(report):
    return [(item.file, item.gap, item.is_blocking) for item in report.not_proved]


def test_hidden_and_unfinished_files_are_read(tmp_path):
    keys = [".hidden", "_temporary/a", "a.tmp", "inbox/raw/.a.csv.tmp", ".d/.e/f"]
    for key in keys:
        written(tmp_path, key, EMAIL)

    assert sorted({item.file for item in searched(tmp_path).findings}) == sorted(keys)


def test_a_name_that_is_no_text_can_be_printed(tmp_path):
    (tmp_path / os.fsdecode(b"a\xff.txt")).write_text(EMAIL)

    searched(tmp_path).as_text().encode()


def test_links_are_reported_and_not_followed(tmp_path):
    home = tmp_path / "home"
    written(home, "a.txt")
    (home / "within").symlink_to(home / "a.txt")
    (home / "out").symlink_to(written(tmp_path, "elsewhere/b.txt", EMAIL).parent)
    os.mkfifo(home / "pipe")

    report = searched(home)

    assert report.findings == ()
    assert gaps(report) == [
        ("out", "not readable", True),
        ("pipe", "not readable", False),
        ("within", "not readable", False),
    ]


def test_a_missing_home_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        searched(tmp_path / "none")


@pytest.mark.parametrize("name", ["a.txt", "a.db"])
def test_a_file_that_vanishes_is_reported(tmp_path, name):
    class Vanishing(FolderRoot):
        def open(self, entry):
            (self.folder / entry.key).unlink()
            return super().open(entry)

    written(tmp_path, name, EMAIL)

    report = search([Vanishing(tmp_path)], by_values([PERSON], COLUMNS))

    assert gaps(report) == [(name, "changed", False)]


def test_a_growing_file_is_read_up_to_its_first_size(tmp_path, monkeypatch):
    file = written(tmp_path, "spark.log", "x" * 100)
    search_file = FilePart.search_file

    def grow_and_search(part, opened, size_bytes):
        with file.open("a") as log:
            log.write(EMAIL)
        search_file(part, opened, size_bytes)

    monkeypatch.setattr(FilePart, "search_file", grow_and_search)

    report = searched(tmp_path)

    assert (report.findings, gaps(report)) == ((), [("spark.log", "changed", False)])


def test_a_failed_read_is_a_gap_and_other_files_are_read(tmp_path):
    class FailingFile(io.FileIO):
        def readinto(self, _):
            raise OSError(5, "Input/output error")

        read = readinto

    class Failing(FolderRoot):
        def open(self, entry):
            file = super().open(entry)
            if entry.key == "a.txt":
                file.close()
                return FailingFile(self.folder / entry.key)
            return file

    written(tmp_path, "a.txt")
    written(tmp_path, "b.txt", EMAIL)

    report = search([Failing(tmp_path)], by_values([PERSON], COLUMNS))

    assert [item.file for item in report.findings] == ["b.txt"]
    assert gaps(report) == [("a.txt", "not readable", True)]


def test_findings_name_their_root(tmp_path):
    for name in ("one", "two", "three"):
        written(tmp_path / name, "a.txt", EMAIL)
    roots = [FolderRoot(tmp_path / "one"), FolderRoot(tmp_path, below="two")]

    report = search(roots, by_values([PERSON], COLUMNS))

    files = [f"{tmp_path}/one/a.txt", f"{tmp_path}/two/a.txt"]
    assert [item.file for item in report.findings] == files
    assert report.roots == (str(tmp_path / "one"), str(tmp_path / "two"))


@pytest.fixture
def bucket():
    with mock_aws():
        client = boto3.client("s3", region_name="eu-central-1")
        client.create_bucket(
            Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        yield BucketRoot(client, "lake")


def put(bucket, key, content):
    bucket.client.put_object(Bucket=bucket.bucket, Key=key, Body=content)


def test_objects_of_a_bucket_are_read(bucket, tmp_path):
    put(bucket, "inbox/raw/a.csv", b"client\n4711\n")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute(f"CREATE TABLE runs AS SELECT {PHONE} AS client")
        connection.commit()
    put(bucket, "a.db", (tmp_path / "a.db").read_bytes())

    report = search([bucket], by_values([PERSON], COLUMNS))

    assert {item.file for item in report.findings} == {"inbox/raw/a.csv", "a.db"}


def test_noncurrent_versions_are_read(bucket):
    keep_versions(bucket)
    put(bucket, "a.txt", EMAIL.encode())
    put(bucket, "a.txt", b"")
    put(bucket, "b.txt", EMAIL.encode())
    bucket.client.delete_object(Bucket="lake", Key="b.txt")

    report = search([bucket], by_values([PERSON], COLUMNS))

    assert [item.file.partition(" (version ")[0] for item in report.findings] == [
        "a.txt",
        "b.txt",
    ]


def test_an_unfinished_upload_is_a_gap(bucket):
    bucket.client.create_multipart_upload(Bucket="lake", Key="warehouse/a.parquet")

    assert gaps(search([bucket], by_values([PERSON], COLUMNS))) == [
        ("warehouse/a.parquet", "not readable", True)
    ]
