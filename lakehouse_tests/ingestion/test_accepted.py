"""Files that are what their feed declares, however their writer put them."""

from dataclasses import replace

import pytest

from lakehouse.tables.feed import Feed, FeedColumn
from lakehouse_tests.ingestion.conftest import CUSTOMERS, FRUITS

ROWS = [("1", "Apple", "false"), ("2", "Kiwi", "true")]
PLAIN = "id,fruit,berry\n1,Apple,false\n2,Kiwi,true\n"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(PLAIN, id="plain"),
        pytest.param(PLAIN.rstrip("\n"), id="no newline at the end"),
        pytest.param(PLAIN.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(PLAIN.replace("\n", "\r"), id="CR"),
        pytest.param("\ufeff" + PLAIN, id="BOM"),
        pytest.param("\ufeff" + PLAIN.replace("\n", "\r\n"), id="BOM and CRLF"),
        pytest.param(PLAIN.replace("\n", "\n\n"), id="empty lines"),
        pytest.param("\n" + PLAIN, id="an empty line before the header"),
        pytest.param(
            '"id","fruit","berry"\n"1","Apple","false"\n"2","Kiwi","true"\n', id="all quoted"
        ),
        pytest.param("berry,id,fruit\nfalse,1,Apple\ntrue,2,Kiwi\n", id="another order"),
    ],
)
def test_the_same_rows_come_of_it(inbox, content: str) -> None:
    inbox.put("fruit.csv", content)

    taken = inbox.look()

    assert taken.values("id", "fruit", "berry") == ROWS
    assert [row["_source_row"] for row in taken.rows] == [1, 2]


def test_a_compressed_file_is_hashed_as_delivered(inbox) -> None:
    import hashlib

    path = inbox.put("fruit.csv.gz", PLAIN)
    delivered = hashlib.sha256(path.read_bytes()).hexdigest()

    taken = inbox.look()

    assert taken.values("id", "fruit", "berry") == ROWS
    assert taken.delivery.arriving == [("fruit.csv.gz", delivered)]


def test_gzip_members_put_one_after_the_other_are_one_file(inbox) -> None:
    import gzip

    inbox.put("fruit.csv.gz", gzip.compress(PLAIN.encode()) + gzip.compress(b"3,Fig,false\n"))

    assert len(inbox.look().rows) == 3


def test_an_empty_field_is_null_and_a_quoted_one_is_empty(inbox) -> None:
    inbox.put("fruit.csv", 'id,fruit,berry\n1,,""\n,,\n')

    assert inbox.look().values("id", "fruit", "berry") == [("1", None, ""), (None, None, None)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ('"Apple, green"', "Apple, green"),
        ('"Apple\ngreen"', "Apple\ngreen"),
        ('"Apple\r\ngreen"', "Apple\r\ngreen"),
        ('"say ""Apple"""', 'say "Apple"'),
        ('5" tree', '5" tree'),
        ("  Apple ", "  Apple "),
        ("NULL", "NULL"),
        ("NaN", "NaN"),
        ("Äpfel 🍏", "Äpfel 🍏"),
        ("007", "007"),
        ("a\x00b", "a\x00b"),
    ],
)
def test_a_value_is_kept_as_delivered(inbox, field: str, value: str) -> None:
    inbox.put("fruit.csv", f"id,fruit,berry\n1,{field},true\n")

    assert inbox.look().values("fruit") == [(value,)]


def test_a_header_alone_is_a_delivery_of_no_rows(inbox) -> None:
    inbox.put("fruit.csv", "id,fruit,berry")

    taken = inbox.look()

    assert [file.rows for file in taken.delivery.files] == [0]
    assert taken.delivery.rejected == ()


def test_an_optional_column_may_be_missing(inbox_of) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", "email,customer_id\na@b.c,7\n")

    assert inbox.look().values("customer_id", "email", "region") == [("7", "a@b.c", None)]


def test_an_undeclared_column_can_be_added_with_a_warning(inbox_of) -> None:
    inbox = inbox_of(Feed("fruits", FRUITS.columns, FRUITS.table, on_new_column="add"))
    inbox.put("fruit.csv", "origin,id,fruit,berry\nPeru,1,Apple,false\n")

    taken = inbox.look()

    assert taken.values("id", "origin") == [("1", "Peru")]
    assert taken.delivery.added_columns == ("origin",)
    (warning,) = taken.delivery.warnings
    assert warning.startswith("fruit.csv brings 'origin', which feed fruits does not declare")


def test_rows_are_numbered_through_all_blocks_of_a_large_file(inbox, monkeypatch) -> None:
    monkeypatch.setattr("lakehouse.ingestion.readers.csv.BLOCK_BYTES", 1 << 10)
    inbox.put(
        "fruit.csv", "id,fruit,berry\n" + "".join(f'{n},"a\nb",true\n' for n in range(1, 5001))
    )

    taken = inbox.look()

    assert taken.values("_source_row", "id") == [(n, str(n)) for n in range(1, 5001)]


def test_a_column_has_another_name_than_in_the_files(inbox) -> None:
    columns = ["id", FeedColumn("kind", header="Kind No."), FeedColumn("berry", optional=True)]
    named = replace(inbox, feed=Feed("fruits", columns, "bronze.raw_fruits"))
    named.put("a.csv", "Kind No.,berry,id\nApple,false,1\n", second=1)
    named.put("b.csv", "id,kind\n2,Kiwi\n", second=2)
    named.put("lacks.csv", "id\n1\n", second=3)

    taken = named.look()

    assert taken.values("id", "kind") == [("1", "Apple"), ("2", "Kiwi")]
    assert "missing column 'Kind No.'" in taken.reason


def test_a_column_may_have_no_name_in_the_files(inbox) -> None:
    columns = [FeedColumn("number", header=""), "fruit"]
    named = replace(inbox, feed=Feed("fruits", columns, "bronze.raw_fruits"))
    named.put("a.csv", '"",fruit\n"1",Apple\n', second=1)
    named.put("b.csv", "fruit,\nKiwi,2\n", second=2)

    assert named.look().values("number", "fruit") == [("1", "Apple"), ("2", "Kiwi")]
