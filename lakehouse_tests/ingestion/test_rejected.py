"""Files that do not match their feed are moved with a reason and stop no others."""

import gzip
import json

import pytest

from lakehouse.ingestion.collected_files import describe_rejected
from lakehouse.tables.feed import Feed
from lakehouse_tests.ingestion.conftest import FRUITS, files

HEADER = "id,fruit,berry\n"
GZIPPED = gzip.compress(
    (HEADER + "".join(f"{n},{n * n},false\n" for n in range(1000))).encode()
)

CASES = [
    ("x.csv", "", "an empty file: found no text"),
    ("x.csv", "\ufeff", "an empty file: found no text"),
    ("x.csv", "1,Apple,false\n2,Kiwi,true\n", "no header: found a first row of 3 fields"),
    ("x.csv", "id;fruit;berry\n1;Apple;false\n", "no header: found a first row of one field"),
    (
        "x.csv",
        '"id,fruit,berry\n1,Apple,false\n',
        "no header: found a first row without an end",
    ),
    (
        "x.csv",
        "id,fruit\n1,Apple\n",
        (
            "missing column 'berry': found a header with 'id', 'fruit'; expected 'id', 'fruit',"
            " 'berry'"
        ),
    ),
    (
        "x.csv",
        "id,fruit,bery\n",
        "missing column 'berry': found a header with 'id', 'fruit', 'bery'",
    ),
    ("x.csv", "id,fruit,berry,\n", "unknown column ''"),
    (
        "x.csv",
        "\ufeff\ufeffid,fruit,berry\n",
        r"missing column 'id': found a header with '\ufeffid', 'fruit', 'berry'",
    ),
    ("x.csv", "id,fruit,berry,\x1b[2J\n", r"unknown column '\x1b[2J': found"),
    ("x.csv", f"id,fruit,berry,{'x' * 999}\n", f"unknown column '{'x' * 60}'…: found"),
    ("x.\x1b[2J", "", r"another kind of file: found '.\x1b[2J'; expected"),
    ("x.csv", "id,fruit,berry,fruit\n1,a,true,b\n", "repeated column 'fruit'"),
    (
        "x.csv",
        HEADER + "1,Apple,false\n2,Kiwi\n",
        "a ragged row: found 2 fields in row 2; expected 3",
    ),
    (
        "x.csv",
        HEADER + '1,"Ap\nple",false\n2\n',
        "a ragged row: found 1 fields in row 2; expected 3",
    ),
    ("x.csv", HEADER + '1,Apple,"false\n2,Kiwi,true\n', "a quote that is never closed"),
    (
        "x.csv",
        HEADER + '1,Apple,false\n2,Kiwi,"true\n3,Fig,false\n4,Pear,"false\n5,Plum,true\n',
        "text after a closing quote: found a quoted value that continues after its quote near line 3",
    ),
    (
        "x.csv.gz",
        gzip.compress((HEADER + '1,"Apple" pie,false\n').encode()),
        "text after a closing quote: found a quoted value that continues after its quote near line 2",
    ),
    (
        "x.csv",
        HEADER.encode() + b"1,a,false\n2,K\xef,true\n",
        "not UTF-8: found other bytes in column fruit in row 2",
    ),
    ("x.csv", "id,frücht\n".encode("latin-1"), "not UTF-8: found other bytes in the header"),
    ("x.csv", GZIPPED, "not UTF-8: found other bytes in the header"),
    ("x.csv.gz", HEADER.encode(), "not a gzip file"),
    ("x.csv.gz", GZIPPED[:-20], "not a gzip file: found one that is cut off"),
    ("x.csv.gz", GZIPPED + b"more", "not a gzip file"),
    (
        "x.csv",
        "sep=;\nid;fruit;berry\n1;Apple;false\n",
        "text before the header: found 'sep=;' in line 1; expected the header in the first line",
    ),
    ("x.csv", "# exported today\n" + HEADER, "found the header in line 2; expected the header"),
    (
        "x.csv",
        '"Fruits, 2026",,\n\n"Updated, ""daily""",2026-07-01,\n' + HEADER,
        "found the header in line 4; expected",
    ),
    (
        "x.csv",
        HEADER + "1,Apple,false\n" + HEADER + "2,Kiwi,true\n",
        "a repeated header: found the header again in row 2; expected it in the first line",
    ),
    (
        "x.csv",
        ("\ufeff" + HEADER + "1,Apple,false\n") * 2,
        "a repeated header: found the header again in row 2",
    ),
    ("x.json", "{}", "another kind of file: found '.json'; expected one of .csv, .csv.gz"),
    ("x", HEADER, "another kind of file: found no ending"),
]


@pytest.mark.parametrize(("name", "content", "said"), CASES, ids=range(len(CASES)))
def test_the_reason_says_what_was_found_and_expected(
    inbox, name: str, content: str | bytes, said: str
) -> None:
    inbox.put(name, content)

    taken = inbox.look()

    assert said in taken.reason
    assert taken.delivery.files == ()
    assert inbox.names() == []


def test_a_name_that_is_not_utf8_is_rejected(inbox) -> None:
    inbox.put("fr\udcfccht.csv", HEADER)

    assert "a name that is not UTF-8" in inbox.look().reason


@pytest.mark.long
def test_a_repeated_header_is_found_in_any_block_and_order(inbox, monkeypatch) -> None:
    monkeypatch.setattr("lakehouse.ingestion.readers.csv.BLOCK_BYTES", 1 << 10)
    header = "berry,id,fruit\n"
    inbox.put("x.csv", header + "true,1,a\n" * 20_000 + header + "true,1,a\n" * 20_000)

    assert "the header again in row 20001" in inbox.look().reason


def test_a_value_may_be_the_name_of_its_column(inbox) -> None:
    inbox.put("x.csv", HEADER + "id,Fruit,berry\nid,,berry\n1,fruit,berry\n")

    assert inbox.look().delivery.files[0].rows == 3


def test_a_row_longer_than_a_block_is_rejected(inbox, monkeypatch) -> None:
    monkeypatch.setattr("lakehouse.ingestion.readers.csv.LONGEST_ROW_BYTES", 1 << 20)
    inbox.put("x.csv", HEADER + "1," + "x" * (10 << 20) + ",true\n")

    assert "a row too long: found a row of more than 1 MB" in inbox.look().reason


@pytest.mark.parametrize("name", ["Berry", "_source_file", "a b", ""])
def test_a_column_that_bronze_cannot_have_is_not_added(inbox_of, name: str) -> None:
    inbox = inbox_of(Feed("fruits", FRUITS.columns, FRUITS.table, on_new_column="add"))
    inbox.put("x.csv", f"id,fruit,berry,{name}\n1,a,true,b\n")

    assert "that bronze cannot have by that name" in inbox.look().reason


def test_it_is_moved_with_its_reason_beside_it(inbox) -> None:
    inbox.put("x.csv", HEADER + "1\n")

    (rejected,) = inbox.look().delivery.rejected

    digits = rejected.sha256[:12]
    assert files(inbox.store, FRUITS.rejected) == [
        f"x.{digits}.csv",
        f"x.{digits}.csv.reason.json",
    ]
    reason = json.loads(
        (inbox.store.root / FRUITS.rejected / f"x.{digits}.csv.reason.json").read_text()
    )
    assert reason == {
        "feed": "fruits",
        "file": "x.csv",
        "sha256": rejected.sha256,
        "reason": "a ragged row",
        "found": "1 fields in row 1",
        "expected": "3, as in the header",
        "rejected_at": reason["rejected_at"],
        "next_step": "Correct the file and put it back.",
    }


def test_what_cannot_be_seen_in_a_file_name_is_shown_and_steers_no_terminal(inbox) -> None:
    inbox.put("a\x1b[2J b.csv", "id,fruit\n")

    (rejected,) = inbox.look().delivery.rejected

    line = describe_rejected(rejected)
    assert line.startswith(r"'a\x1b[2J b.csv' was rejected: ")
    assert "\x1b" not in line


def test_each_content_of_a_name_is_kept_once(inbox) -> None:
    for content in ("id\n", "fruit\n", "id\n"):
        inbox.put("x.csv", content)
        inbox.look()

    assert len(files(inbox.store, FRUITS.rejected)) == 4
    assert inbox.names() == []


def test_the_files_behind_it_go_on(inbox) -> None:
    inbox.put("a.csv", HEADER + "1,Apple,false\n", second=1)
    inbox.put("b.csv", "nonsense", second=2)
    inbox.put("c.csv", HEADER + "2,Kiwi,true\n", second=3)

    taken = inbox.look()

    assert taken.values("_source_file", "id") == [("a.csv", "1"), ("c.csv", "2")]
    assert [file.source_file for file in taken.delivery.rejected] == ["b.csv"]


def test_nothing_of_it_is_staged(inbox) -> None:
    from lakehouse.ingestion.collect import collect_files
    from lakehouse.ingestion.feed_lock import lock_feed

    inbox.put("x.csv", HEADER + "1,Apple,false\n" * 10 + "1\n")

    with lock_feed(FRUITS, inbox.store.root) as ingest:
        collect_files(inbox.store, ingest)
        assert [path for path in ingest.staging.rglob("*") if path.is_file()] == []
