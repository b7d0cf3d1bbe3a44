"""Delivered files that somebody named are emptied, also of a feed that holds nobody."""

import gzip

import pytest

from lakehouse.ingestion.rewritten_files import NOTHING
from lakehouse.privacy.delivered_files import FilesRewritten, empty_files, may_be_of
from lakehouse.tables.feed import Feed
from lakehouse_tests.privacy.files.conftest import ANN, MIXED, WITHOUT, sha256

PLAIN = Feed("customers", ["customer_id", "email"], "bronze.raw_customers")


@pytest.mark.parametrize(
    ("place", "name_it"),
    [
        ("rejected/customers/c.{}.csv.gz", lambda key, _: key),
        ("inbox/customers/c.csv.gz", lambda _, digest: digest),
        ("archive/customers/2026-11-01/c.{}.csv.gz", lambda _, digest: digest),
    ],
)
def test_a_closed_file_of_a_feed_that_holds_nobody_is_emptied_where_it_is_named(
    files, place: str, name_it
) -> None:
    closed = gzip.compress(MIXED.encode())[:-9]
    key = files.put(place, closed)
    other = files.put("rejected/customers/other.{}.csv.gz", closed + b"x")
    named = name_it(key, sha256(closed))

    def emptied() -> FilesRewritten:
        return empty_files(
            files.store, PLAIN, [ANN], "R-1", home=files.home, erase_whole=[named]
        )

    done = emptied()

    assert (files.read(key), files.read(other)) == (b"", closed + b"x")
    assert (done.named, done.unreadable) == ({named: ""}, ())
    assert [(file.key, file.new_sha256) for file in done.files] == [(key, NOTHING)]
    again = emptied()
    assert (again, again.named) == (done, {named: ""})


def test_a_file_that_could_not_be_exchanged_is_not_said_to_be_empty(files, monkeypatch) -> None:
    closed = gzip.compress(MIXED.encode())[:-9]
    key = files.put("rejected/customers/c.{}.csv.gz", closed)
    digest = sha256(closed)
    files.put("inbox/customers/c.csv.gz", closed)
    exchange = type(files.store).exchange

    def fail_for_inbox(store, item, made):
        return exchange(store, item, made) if item.key == key else None

    monkeypatch.setattr(type(files.store), "exchange", fail_for_inbox)

    done = empty_files(
        files.store, PLAIN, [ANN], "R-1", home=files.home, erase_whole=[key, digest]
    )

    assert done.named == {key: "", digest: "it was changed as it was read"}


def test_files_that_nobody_named_are_not_told(files) -> None:
    closed = gzip.compress(MIXED.encode())[:-9]
    files.put("inbox/customers/other.csv.gz", closed + b"x")

    done = empty_files(
        files.store, PLAIN, [ANN], "R-1", home=files.home, erase_whole=[sha256(closed)]
    )

    assert (done.unreadable, done.named) == ((), {})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("inbox/customers/a.csv", True),
        ("rejected/customers/a.csv", True),
        ("inbox/customers_old/a.csv", False),
        ("inbox/orders/customers/a.csv", False),
        ("0" * 64, True),
    ],
)
def test_a_key_names_its_feed_and_a_hash_none(name: str, expected: bool) -> None:
    assert may_be_of(PLAIN, [name]) is expected


def test_what_can_be_read_is_not_emptied_and_that_is_said(files) -> None:
    key = files.put("archive/customers/2026-11-01/c.{}.csv", MIXED)
    left = files.put("inbox/customers/.c.csv", MIXED)

    done = empty_files(
        files.store, PLAIN, [ANN], "R-1", home=files.home, erase_whole=[key, left, "gone"]
    )
    of_people = files.erase(erase_whole=[key])

    assert "it can be read" in done.named[key]
    assert "hidden or half-written" in done.named[left]
    assert "gone" not in done.named
    assert "it can be read" in of_people.named[key]
    assert files.text(key) == WITHOUT
