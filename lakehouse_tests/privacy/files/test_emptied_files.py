"""Unreadable delivered files that the caller named are emptied, and no others."""

import gzip

import pytest

from lakehouse.ingestion.rewritten_files import NOTHING
from lakehouse_tests.privacy.files.conftest import MIXED, WITHOUT, sha256


@pytest.mark.parametrize(
    ("place", "name_it"),
    [
        ("rejected/customers/c.{}.csv.gz", lambda key, _: key),
        ("inbox/customers/c.csv.gz", lambda _, digest: digest),
        ("archive/customers/2026-11-01/c.{}.csv.gz", lambda _, digest: digest),
    ],
)
def test_an_unreadable_file_is_emptied_by_its_key_or_hash(files, place: str, name_it) -> None:
    closed = gzip.compress(MIXED.encode())[:-9]
    key = files.put(place, closed)
    other = files.put("rejected/customers/other.{}.csv.gz", closed + b"x")
    named = name_it(key, sha256(closed))

    done = files.erase(erase_whole=[named])

    assert (files.read(key), files.read(other)) == (b"", closed + b"x")
    assert done.emptied == {named}
    assert [one.key for one in done.unreadable] == [other]
    assert [(file.key, file.new_sha256) for file in done.files] == [(key, NOTHING)]
    again = files.erase(erase_whole=[named])
    assert (again.files, again.emptied) == (done.files, {named})


def test_a_file_that_could_not_be_exchanged_is_not_emptied(files, monkeypatch) -> None:
    key = files.put("inbox/customers/c.csv.gz", gzip.compress(MIXED.encode())[:-9])
    monkeypatch.setattr(type(files.store), "exchange", lambda *_: None)

    done = files.erase(erase_whole=[key])

    assert done.emptied == set()
    assert [file.why for file in done.unreadable] == ["it was changed while it was read"]


def test_what_can_be_read_is_not_emptied_and_that_is_said(files) -> None:
    key = files.put("archive/customers/2026-11-01/c.{}.csv", MIXED)

    done = files.erase(erase_whole=[key, "gone"])

    assert done.emptied == set()
    assert files.text(key) == WITHOUT
