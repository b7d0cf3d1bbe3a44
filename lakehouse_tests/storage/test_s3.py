"""A bucket as an object store: the same as a folder to whoever uses it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.storage.s3 import S3ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse_tests.conftest import keep_versions


@pytest.fixture
def store(aws_settings) -> S3ObjectStore:
    return open_store(aws_settings)


def test_the_prefixes_that_hold_anything_are_told_by_one_look(store) -> None:
    assert store.occupied("inbox/") == set()
    for key in ("inbox/f/a", "inbox/f/d/c", "inbox/g/.hidden", "archive/h/a"):
        store.write_text(key, key)
    assert store.occupied("inbox/") == {"f", "g"}


@pytest.mark.parametrize("code", ["NoSuchKey", "PreconditionFailed"])
def test_what_s3_removed_and_could_not_say_so_is_moved(store, monkeypatch, code: str) -> None:
    delete = store.client.delete_object

    def answered_by_the_repetition(**of: str) -> None:
        delete(**of)
        raise ClientError({"Error": {"Code": code}}, "DeleteObject")

    monkeypatch.setattr(store.client, "delete_object", answered_by_the_repetition)
    store.write_text("a", "text")

    assert store.move(store.stat("a"), "b")
    assert not store.exists("a")
    assert store.open("b").read() == b"text"


def after_each_copy(store: S3ObjectStore, monkeypatch, do: Callable[[], object]) -> None:
    """Have something happen between the copy of an object and its removal."""
    copy = store.client.copy

    def copied(*arguments: object, **of: object) -> None:
        copy(*arguments, **of)
        do()

    monkeypatch.setattr(store.client, "copy", copied)


def test_what_another_host_moved_to_the_same_key_stays_there(store, monkeypatch) -> None:
    store.write_text("a", "text")
    after_each_copy(store, monkeypatch, lambda: store.remove(store.stat("a")))

    assert store.move(store.stat("a"), "b")
    assert store.open("b").read() == b"text"


def test_what_is_delivered_anew_after_another_host_moved_it_costs_no_copy(store, monkeypatch):
    store.write_text("a", "old")

    def moved_by_another_and_delivered_anew() -> None:
        store.remove(store.stat("a"))
        store.write_text("a", "new")

    after_each_copy(store, monkeypatch, moved_by_another_and_delivered_anew)

    assert not store.move(store.stat("a"), "b")
    assert (store.open("a").read(), store.open("b").read()) == (b"new", b"old")


def test_a_bucket_that_is_not_there_is_named(aws_settings) -> None:
    with pytest.raises(UsageError, match="no bucket 'other'"):
        open_store(replace(aws_settings, bucket="other")).objects("inbox/f/")


def test_what_a_bucket_keeps_of_an_exchanged_object_is_removed(store, tmp_path: Path) -> None:
    keep_versions(store)
    store.write_text("a", "old")
    (tmp_path / "new").write_text("new")

    store.exchange(store.stat("a"), tmp_path / "new")

    assert store.old_versions("") == []


def test_what_s3_exchanged_and_could_not_say_so_is_exchanged(store, monkeypatch, tmp_path):
    keep_versions(store)
    put = store.client.put_object

    def answered_by_the_repetition(**of: object) -> None:
        put(**of)
        raise ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")

    store.write_text("a", "old")
    (tmp_path / "new").write_text("new")
    monkeypatch.setattr(store.client, "put_object", answered_by_the_repetition)

    assert store.exchange(store.stat("a"), tmp_path / "new") == store.stat("a")
    assert store.open("a").read() == b"new"
    assert store.old_versions("") == []


@pytest.mark.parametrize("meanwhile", ["other", None])
def test_what_changes_as_it_is_exchanged_stays_as_it_is_then(
    store, monkeypatch, tmp_path: Path, meanwhile: str | None
) -> None:
    put = store.client.put_object

    def refused(**of: object) -> None:
        if meanwhile:
            put(**{**of, "Body": meanwhile.encode(), "IfMatch": seen.version})
        else:
            store.client.delete_object(Bucket=store.bucket, Key="a")
        raise ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")

    store.write_text("a", "old")
    seen = store.stat("a")
    (tmp_path / "new").write_text("new")
    monkeypatch.setattr(store.client, "put_object", refused)

    assert store.exchange(seen, tmp_path / "new") is None
    assert [store.open(item.key).read() for item in store.objects("")] == (
        [b"other"] if meanwhile else []
    )


def test_old_versions_are_read_and_removed(store) -> None:
    keep_versions(store)
    for text in ("old", "new"):
        store.write_text("a", text)
    store.remove(store.stat("a"))

    read = [store.open_old(old).read() for old in store.old_versions("")]
    assert sorted(read) == [b"new", b"old"]
    for old in store.old_versions(""):
        store.remove_old(old)
        with pytest.raises(FileNotFoundError):
            store.open_old(old)
    assert store.old_versions("") == []


def test_of_removed_objects_the_versions_go_before_the_markers(store) -> None:
    keep_versions(store)
    for key in ("f/b", "f/a", "f/there"):
        store.write_text(key, "old")
        store.write_text(key, "new")
    for key in ("f/a", "f/b"):
        store.remove(store.stat(key))

    removed = store.versions_of_removed("f/")

    assert [(item.key, item.size_bytes) for item in removed] == [
        *[("f/a", 3)] * 2,
        *[("f/b", 3)] * 2,
        ("f/a", 0),
        ("f/b", 0),
    ]
    store.remove_versions(removed)
    assert {item.key for item in store.all_versions("f/")} == {"f/there"}


def test_parts_of_what_never_appeared_are_discarded(store) -> None:
    for key in ("f/a", "g/a"):
        upload = store.client.create_multipart_upload(Bucket=store.bucket, Key=key)
        store.client.upload_part(
            Bucket=store.bucket,
            Key=key,
            PartNumber=1,
            UploadId=upload["UploadId"],
            Body=b"part",
        )

    assert store.discard_uploads("f/") == ["f/a"]
    assert store.discard_uploads("f/") == []
    assert store.discard_uploads("g/") == ["g/a"]


def test_a_denied_deletion_of_a_version_is_an_error(store, monkeypatch) -> None:
    denial = {"Key": "f/a", "Code": "AccessDenied"}
    monkeypatch.setattr(store.client, "delete_objects", lambda **_: {"Errors": [denial]})
    store.write_text("f/a", "rows")

    with pytest.raises(LakehouseError, match=r"f/a was not deleted.*DeleteObjectVersion"):
        store.remove_folder("f/")
