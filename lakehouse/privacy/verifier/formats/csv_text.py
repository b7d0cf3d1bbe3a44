"""CSV as somebody delivered it: its header names the columns."""

import csv
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from typing import IO, BinaryIO, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv

from lakehouse.privacy.verifier.formats.arrow_file import left_open
from lakehouse.privacy.verifier.search_state import FilePart, TextToSearch
from lakehouse.privacy.verifier.sought_values import Sought

_DELIMITERS = ",;\t|"
_LARGEST_FIELD = 16 * 1024 * 1024
_BLOCK_BYTES = 8 * 1024 * 1024
_BATCH_ROWS = 16 * 1024
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_Compared = Mapping[int, str]
"""The columns that have people in them: by number, the name in the header."""


def read_csv(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Compare the columns that have people in them.

    Rows are counted from 1, without the header. A delivery to a table that has people in it,
    whose header names none of the columns, is said to be not compared.

    :raises csv.Error: where it cannot be read as rows.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    encoding = _MARKS.get(file.read(2), "utf-8-sig")
    file.seek(0)
    text = TextIOWrapper(file, encoding, errors="replace", newline="")
    try:
        delimiter, header = _header(text)
        named = {number: name for number, name in enumerate(header) if part.compares([name])}
        if not named:
            _say_that_none_is_named(part)
        elif encoding == "utf-16" or not _compare_by_arrow(
            file, delimiter, header, named, part
        ):
            text.seek(0)
            _compare_by_rows(text, delimiter, named, part)
    finally:
        text.detach()


def _header(text: TextIOWrapper) -> tuple[str, list[str]]:
    first_line = text.readline()
    text.seek(0)
    delimiter = max(_DELIMITERS, key=first_line.count)
    return delimiter, next(csv.reader(text, delimiter=delimiter), [])


def _say_that_none_is_named(part: FilePart) -> None:
    if part.is_declared:
        what = "its header names no column that has people in it; only bytes were searched"
        part.gap("not compared", what, is_blocking=False)


def _compare_by_arrow(
    file: BinaryIO, delimiter: str, header: list[str], named: _Compared, part: FilePart
) -> bool:
    """Compare the columns of a well-formed file, many times faster than row by row; False, and
    nothing was found, where it is not.
    """
    if len(set(header)) != len(header):
        return False
    file.seek(0)
    names = list(named.values())
    found: list[tuple[str, int, Sought]] = []
    first_row = 1
    try:
        with arrow_csv.open_csv(
            cast(IO[bytes], left_open(file)),
            arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False
            ),
            arrow_csv.ConvertOptions(
                include_columns=names, column_types=dict.fromkeys(names, pa.string())
            ),
        ) as reader:
            for batch in reader:
                for name in names:
                    texts = cast(pa.StringArray, batch[name])
                    for index, sought in part.matches([name.strip()], texts):
                        found.append((name.strip(), first_row + index, sought))
                first_row += batch.num_rows
    except pa.ArrowInvalid:
        return False
    for name, row, sought in found:
        part.found(sought, "column", column=name, row=row)
    return True


def _compare_by_rows(
    text: TextIOWrapper, delimiter: str, named: _Compared, part: FilePart
) -> None:
    rows = csv.reader(text, delimiter=delimiter)
    next(rows)
    for batch in _batches(rows):
        for number, name in named.items():
            values = [
                TextToSearch(fields[number].encode("utf-8", "replace"), name.strip(), row)
                for row, fields in batch
                if number < len(fields)
            ]
            part.search_values([name.strip()], values)


def _batches(rows: Iterator[list[str]]) -> Iterator[list[tuple[int, list[str]]]]:
    batch = []
    for row in enumerate(rows, start=1):
        batch.append(row)
        if len(batch) == _BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
