"""The rows found in the bytes of a CSV file are those that Arrow reads."""

import gzip
import io
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.csv_rows import csv_rows, csv_values
from lakehouse.ingestion.readers.file_formats import open_reader, row_bytes, write_without_rows
from lakehouse.ingestion.rewrite_file import RowNumbers
from lakehouse.tables.feed import Feed
from lakehouse_tests.examples import examples

FEED = Feed("fruits", ["id", "fruit"], "bronze.raw_fruits")
PARTS = ["a", "é", " ", '"', '""', ",", "\n", "\r", "\r\n", "\0", "\u2028", "\ufeff", "7", ""]
values = st.lists(st.sampled_from(PARTS), max_size=5).map("".join)


@st.composite
def written(draw) -> bytes:
    ends = st.sampled_from(["\n", "\r\n", "\r"])
    text = draw(st.sampled_from(["", "\ufeff"])) + draw(st.sampled_from(["", "\n", "\r\n\r"]))
    text += "id,fruit" + draw(ends)
    for _ in range(draw(st.integers(0, 8))):
        fields = [_field(draw(values), draw(st.booleans())) for _ in range(2)]
        text += ",".join(fields) + draw(ends) + draw(st.sampled_from(["", "", "\n", "\r"]))
    if draw(st.booleans()):
        text += "x,y"
    return text.encode()


def _field(value: str, is_quoted: bool) -> str:
    if is_quoted:
        return '"' + value.replace('"', '""') + '"'
    plain = "".join(character for character in value if character not in ",\r\n")
    return plain.lstrip('"') or "-"


def read(raw: bytes, name: str = "csv") -> list[tuple]:
    reader = open_reader(FEED, name, io.BytesIO(raw), use_threads=False)
    rows: list[tuple] = []
    for batch in reader.batches():
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows


class InPieces(io.BytesIO):
    def read(self, size: int = -1) -> bytes:
        return super().read(min(size, 3) if size > 0 else size)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@settings(max_examples=examples(30, 60))
@given(raw=written())
def test_rows_of_other_delimiters_are_told_apart_too(raw: bytes, delimiter: str) -> None:
    # A comma stands for the delimiter in what is written, and the delimiter for a comma.
    swapped = raw.translate(
        bytes.maketrans(b"," + delimiter.encode(), delimiter.encode() + b",")
    )
    division = row_bytes("csv", delimiter)
    numbered = [row for row in division.rows(io.BytesIO(swapped)) if row.number is not None]

    feed = replace(FEED, delimiter=delimiter)
    reader = open_reader(feed, "csv", io.BytesIO(swapped), use_threads=False)
    batches = [batch.to_pylist() for batch in reader.batches()]
    read_rows = [
        tuple(value or "" for value in row.values()) for part in batches for row in part
    ]
    assert [tuple(division.values(row.raw)) for row in numbered[1:]] == read_rows


@settings(max_examples=examples(60, 200))
@given(raw=written(), in_pieces=st.booleans())
def test_they_are_the_rows_that_the_reader_reads(raw: bytes, in_pieces: bool) -> None:
    rows = list(csv_rows(InPieces(raw) if in_pieces else io.BytesIO(raw)))

    assert b"".join(row.raw for row in rows) == raw
    numbered = [row for row in rows if row.number is not None]
    assert [row.number for row in numbered] == list(range(len(numbered)))
    told = [tuple(csv_values(row.raw)) for row in numbered[1:]]
    assert told == [tuple(value or "" for value in row) for row in read(raw)]


@settings(max_examples=examples(60, 200))
@given(raw=written(), data=st.data(), is_compressed=st.booleans())
def test_left_out_rows_go_and_all_others_are_read_with_their_numbers(
    raw: bytes, data, is_compressed: bool
) -> None:
    before = read(raw)
    left_out = data.draw(st.sets(st.integers(1, max(1, len(before))))) if before else set()
    name = "csv.gz" if is_compressed else "csv"
    delivered = gzip.compress(raw) if is_compressed else raw
    made = io.BytesIO()

    write_without_rows(name, io.BytesIO(delivered), left_out, made)

    numbers = RowNumbers.without(left_out)
    after = read(made.getvalue(), name)
    told = {numbers.number(at): row for at, row in enumerate(after, start=1)}
    assert told == {
        number: row for number, row in enumerate(before, start=1) if number not in left_out
    }
    assert numbers.of_batch(1, len(after)).to_pylist() == list(told)
    assert [numbers.position(number) for number in told] == list(range(1, len(after) + 1))
    content = gzip.decompress(made.getvalue()) if is_compressed else made.getvalue()
    kept = [row.raw for row in csv_rows(io.BytesIO(raw)) if row.number not in left_out]
    assert content == b"".join(kept)


@settings(max_examples=examples(60, 200))
@given(raw=st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_any_text_has_every_byte_once_and_an_open_quote_ends_in_a_rest(raw: str) -> None:
    text = f"id,fruit\n{raw}".encode()
    rows = list(csv_rows(io.BytesIO(text)))
    assert b"".join(row.raw for row in rows) == text
    rest = [row for row in rows if row.is_rest]
    try:
        read(text)
    except FileRejected as why:
        assert rest or why.reason != "a quote that is never closed"
    else:
        assert rest == []


@pytest.mark.long
def test_of_a_row_without_end_no_more_is_kept_than_the_longest_row() -> None:
    class Endless:
        """A gigabyte of one value."""

        left = 1 << 30

        def read(self, size: int = -1, /) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return b"x" * size

    most = 0
    for row in csv_rows(Endless()):
        assert row.is_rest
        most = max(most, len(row.raw))
    assert most < 40 << 20


def test_a_large_file_is_written_in_pieces(tmp_path: Path) -> None:
    import tracemalloc

    row = b"8," + b"x" * 1000 + b"\n"
    with tempfile.TemporaryFile(dir=tmp_path) as file, tempfile.TemporaryFile() as made:
        file.write(b"id,fruit\n" + row * 30_000)
        file.seek(0)
        tracemalloc.start()
        write_without_rows("csv", file, {2}, made)
        _, most_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert made.tell() == 9 + len(row) * 29_999
    assert most_bytes < 20 << 20
