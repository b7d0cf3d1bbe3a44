"""A quoted value that goes on behind its closing quote is refused; all else is read as Arrow does."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.csv import ClosingQuotes
from lakehouse.ingestion.readers.file_formats import open_reader
from lakehouse.tables.feed import Feed
from lakehouse_tests.examples import examples

pytestmark = pytest.mark.unit
FEED = Feed("notes", ["id", "note"], "bronze.notes", on_new_column="ignore")
PARTS = ["a", "é", '"', '""', '"a"', ";", ";", "\n", "\r", "\r\n", 'x"', '";"']
SWALLOWED = 'id,note\n1,"foo\n2,bar\n3,"baz\n4,q\n'


def read(text: str, feed: Feed = FEED) -> list[dict]:
    reader = open_reader(feed, "csv", io.BytesIO(text.encode()), use_threads=False)
    return [row for batch in reader.batches() for row in batch.to_pylist()]


def refused(text: str, feed: Feed = FEED) -> str:
    with pytest.raises(FileRejected, match="text after a closing quote") as why:
        read(text, feed)
    return str(why.value)


def test_rows_between_two_quotes_too_many_are_not_taken_for_a_value():
    assert refused(SWALLOWED) == (
        "text after a closing quote: found a quoted value that continues after its quote near line 2;"
        " expected commas or line ends behind closing quotes. Write quotes inside of quoted"
        ' values twice (""), and put the file back.'
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('id,note\n\n1,a\r\n2,"x\n\ny"\n3,"b"c\n', 7),
        ('id,note,undeclared\n1,a,"x\n2,b,"y\n3,c,z\n', 2),
        ('\ufeff"id","note"\n1,"a" \n', 2),
        ('id,note\n5"6,"a"\n7","b"c\n', 3),
    ],
)
def test_the_line_is_told(text: str, number: int):
    assert f"near line {number};" in refused(text)


def test_another_delimiter_is_none_behind_a_quote():
    feed = Feed("notes", ["id", "note"], "bronze.notes", delimiter=";")

    assert "near line 2; expected semicolons or" in refused('id;note\n"1",2;3\n', feed)
    assert read('id;note\n"1";"2,3"\n', feed) == [{"id": "1", "note": "2,3"}]


@pytest.mark.parametrize("note", ['5" pipe', 'a"b"c', '""""', '"a""b"', '"\n""\n"', '""'])
def test_quotes_inside_of_values_are_taken(note: str):
    is_quoted = note.startswith('"')
    value = note[1:-1].replace('""', '"') if is_quoted else note

    assert read(f"id,note\n1,{note}\n") == [{"id": "1", "note": value}]


def has_fault(text: str) -> bool:
    state = "start"
    for sign in text:
        is_end = sign in ";\r\n"
        if state == "closed" and not is_end and sign != '"':
            return True
        if sign == '"' and state != "plain":
            state = "closed" if state == "quoted" else "quoted"
        elif state != "quoted":
            state = "start" if is_end else "plain"
    return False


@settings(max_examples=examples(300, 3000))
@given(
    text=st.lists(st.sampled_from(PARTS), max_size=25).map("".join),
    size=st.integers(1, 9),
    is_marked=st.booleans(),
)
def test_blocks_are_looked_through_as_if_they_were_one(text: str, size: int, is_marked: bool):
    raw = text.encode()
    blocks = [raw[at : at + size] for at in range(0, len(raw), size)]
    if is_marked:
        blocks.insert(0, b"\xef\xbb\xbf")

    quotes = ClosingQuotes(";")
    is_right = all(quotes.are_followed(block) for block in blocks)

    assert is_right != has_fault(text)
