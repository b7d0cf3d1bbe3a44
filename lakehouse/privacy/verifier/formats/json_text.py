"""JSON, and lines of it."""

import json
from collections.abc import Iterator
from typing import BinaryIO

from lakehouse.privacy.verifier.places import METADATA
from lakehouse.privacy.verifier.record_columns import RecordColumns
from lakehouse.privacy.verifier.search_state import FilePart

LARGEST_BYTES = 64 * 1024 * 1024
"""Of one value of JSON; a larger file has to be lines of it."""

_LINES = ".jsonl"


def read_json(file: BinaryIO, size_bytes: int, part: FilePart) -> None:
    """Search what JSON says, whatever way it is escaped in.

    :raises ValueError: where it is none, or one value of it is too large.
    """
    columns = RecordColumns(part.outside_of_rows() if part.place == METADATA else part)
    if size_bytes <= LARGEST_BYTES:
        content = file.read(size_bytes)
        file.seek(0)
        if _add(columns, content, None):
            columns.flush()
            return
    for number, line in enumerate(_lines(file, size_bytes), start=1):
        if line.strip() and not _add(columns, line, number):
            if not part.key.endswith(_LINES):
                columns.flush()
                raise ValueError(f"line {number} is no JSON")
            # A full disk or a killed process tears a line; its bytes were searched.
            what = f"line {number} is incomplete; only its bytes were searched"
            part.gap("not compared", what, is_blocking=False)
    columns.flush()


def _add(columns: RecordColumns, content: bytes, row: int | None) -> bool:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return False
    columns.add(value, row)
    return True


def _lines(file: BinaryIO, size_bytes: int) -> Iterator[bytes]:
    read_bytes = 0
    pending = b""
    while chunk := file.read(min(LARGEST_BYTES, size_bytes - read_bytes)):
        read_bytes += len(chunk)
        *lines, pending = (pending + chunk).split(b"\n")
        yield from lines
        if len(pending) > LARGEST_BYTES:
            raise ValueError(f"a line has more than {LARGEST_BYTES} bytes")
    yield pending
