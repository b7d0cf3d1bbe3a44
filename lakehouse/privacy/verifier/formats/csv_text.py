"""CSV as somebody delivered it: its header names the columns."""

import csv
from collections.abc import Iterator
from io import TextIOWrapper
from typing import BinaryIO

from lakehouse.privacy.verifier.search_state import FilePart, TextToSearch

_DELIMITERS = ",;\t|"
_LARGEST_FIELD = 16 * 1024 * 1024
_BATCH_ROWS = 16 * 1024
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def read_csv(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Compare the columns that have people in them, row by row.

    Rows are counted from 1, without the header. A delivery to a table that has people in it,
    whose header names none of the columns, is said to be not compared.

    :raises csv.Error: where it cannot be read as rows.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    encoding = _MARKS.get(file.read(2), "utf-8-sig")
    file.seek(0)
    text = TextIOWrapper(file, encoding, errors="replace", newline="")
    try:
        _read_rows(text, part)
    finally:
        text.detach()


def _read_rows(text: TextIOWrapper, part: FilePart) -> None:
    header_line = text.readline()
    text.seek(0)
    delimiter = max(_DELIMITERS, key=header_line.count)
    rows = csv.reader(text, delimiter=delimiter)
    header = [name.strip() for name in next(rows, [])]
    compared = {index: name for index, name in enumerate(header) if part.compares([name])}
    if not compared and part.is_declared:
        what = "its header names no column that has people in it; only bytes were searched"
        part.gap("not compared", what, is_blocking=False)
    if not compared:
        return
    for batch in _batches(rows):
        for index, name in compared.items():
            values = [
                TextToSearch(fields[index].encode("utf-8", "replace"), name, row)
                for row, fields in batch
                if index < len(fields)
            ]
            part.search_values([name], values)


def _batches(rows: Iterator[list[str]]) -> Iterator[list[tuple[int, list[str]]]]:
    batch = []
    for row in enumerate(rows, start=1):
        batch.append(row)
        if len(batch) == _BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
