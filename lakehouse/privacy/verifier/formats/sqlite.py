"""SQLite: the values of all tables, and every page as it is: free ones, slack, and what its log of
changes has.
"""

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np

from lakehouse.privacy.verifier.formats.compressed import decompressed
from lakehouse.privacy.verifier.record_columns import RecordColumns
from lakehouse.privacy.verifier.search_state import FilePart

_WAL_HEADER = struct.Struct(">IIIIIIII")
_FRAME_HEADER = struct.Struct(">IIIIII")
_LEGACY_JOURNAL = b"\x01\x01"
_VERSIONS_AT = 18
"""Where the header says whether a log of changes is kept beside the database."""
_ZLIB_HEADERS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_GZIP_HEADER = b"\x1f\x8b"
_ATTEMPTS = 5
_CHUNK_BYTES = 1024 * 1024
_LARGEST_BLOB_BYTES = 256 * 1024 * 1024


def read_sqlite(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search a database with what its log has committed, by a copy.

    The bytes of the database and of its log are searched elsewhere, as those of any file.

    :raises sqlite3.Error: where it is none, or damaged.
    """
    with tempfile.TemporaryFile() as database:
        log = _copy_with_log(file, database, part)
        if log is not None:
            with log:
                _apply_log(database, log)
        _forget_log(database)
        _search_overflow(database, part)
        _search_tables(database, part)


def _copy_with_log(file: BinaryIO, copy: BinaryIO, part: FilePart) -> BinaryIO | None:
    """Copy a database, and return its log as it was at the same time; None where it has none.

    The database is the same before and after the log was opened, or all of it is read anew.
    """
    name = PurePosixPath(part.key).name
    file.seek(0)
    shutil.copyfileobj(file, copy)
    for _ in range(_ATTEMPTS):
        log = part.open_beside(f"{name}-wal")
        again = part.open_beside(name)
        if again is None:
            return log
        with again:
            if _are_same(copy, again):
                return log
            copy.seek(0)
            copy.truncate()
            again.seek(0)
            shutil.copyfileobj(again, copy)
        if log is not None:
            log.close()
    part.gap("changed", f"it was written to during {_ATTEMPTS} reads of it")
    return None


def _are_same(one: BinaryIO, other: BinaryIO) -> bool:
    one.seek(0)
    other.seek(0)
    while True:
        chunk = one.read(_CHUNK_BYTES)
        if chunk != other.read(_CHUNK_BYTES):
            return False
        if not chunk:
            return True


def _page_bytes(database: BinaryIO) -> int:
    database.seek(16)
    (page_bytes,) = struct.unpack(">H", database.read(2))
    return 65536 if page_bytes == 1 else page_bytes


def _apply_log(database: BinaryIO, log: BinaryIO) -> None:
    """Write the pages of all committed transactions of a log into the copy of its database."""
    header = log.read(_WAL_HEADER.size)
    if len(header) < _WAL_HEADER.size:
        return
    _, _, page_bytes, _, *salts = _WAL_HEADER.unpack(header)[:6]
    uncommitted: list[tuple[int, bytes]] = []
    while frame := log.read(_FRAME_HEADER.size):
        page = log.read(page_bytes)
        if len(frame) < _FRAME_HEADER.size or len(page) < page_bytes:
            return
        number, pages_at_commit, *frame_salts = _FRAME_HEADER.unpack(frame)[:4]
        if frame_salts != salts:
            # Left from before the log was begun anew.
            return
        uncommitted.append((number, page))
        if pages_at_commit:
            for written, content in uncommitted:
                database.seek((written - 1) * page_bytes)
                database.write(content)
            database.truncate(pages_at_commit * page_bytes)
            uncommitted = []


def _forget_log(database: BinaryIO) -> None:
    database.seek(_VERSIONS_AT)
    database.write(_LEGACY_JOURNAL)
    database.flush()


def _search_tables(database: BinaryIO, part: FilePart) -> None:
    with tempfile.TemporaryDirectory(prefix="lakehouse-verify-") as folder:
        copy = Path(folder, "database")
        with copy.open("wb") as file:
            database.seek(0)
            shutil.copyfileobj(database, file)
        connection = sqlite3.connect(f"{copy.as_uri()}?immutable=1&mode=ro", uri=True)
        with closing(connection):
            connection.text_factory = bytes
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            ).fetchall()
            # It is open: from here on no name leads to the copy, and no end leaves it behind.
            copy.unlink()
            for (name,) in tables:
                _search_table(connection, name.decode(), part)


def _search_table(connection: sqlite3.Connection, name: str, part: FilePart) -> None:
    within = part.within(f"table {name}")
    quoted = name.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{quoted}"')
    names = [column[0] for column in cursor.description]
    columns = RecordColumns(within)
    for number, row in enumerate(cursor, start=1):
        record = {column: _readable(value) for column, value in zip(names, row, strict=True)}
        columns.add(record, number)
    columns.flush()


def _readable(value: Any) -> Any:
    """Return a value as it was before it was compressed, as Dagster's definitions are."""
    if not isinstance(value, bytes) or len(value) > _LARGEST_BLOB_BYTES:
        return value
    try:
        if value.startswith(_ZLIB_HEADERS):
            return decompressed(value, "zlib")
        if value.startswith(_GZIP_HEADER):
            return decompressed(value, "gzip")
    except (OSError, EOFError, ValueError, ArithmeticError):
        # A text may begin like that.
        return value
    return value


def _search_overflow(database: BinaryIO, part: FilePart) -> None:
    """Search where a value goes from one page on to another.

    What does not fit in a page goes on in others, each of which begins with the number of the
    next. Where in a page that was freed a row ended is not known any more, so that whatever
    could be the number of a page is taken for one.
    """
    if part.state.search is None:
        return
    reach = part.state.search.longest
    for border in _borders(database, reach):
        part.search_block(border, is_database=True)


def _borders(database: BinaryIO, reach: int) -> Iterator[bytes]:
    page_bytes = _page_bytes(database)
    size_bytes = database.seek(0, 2)
    pages = size_bytes // page_bytes
    content = np.memmap(database, np.uint8, "r", shape=(pages, page_bytes)) if pages else ()
    for page in content:
        pointers = _possible_pointers(page, pages)
        joined = [
            _joined(page[max(0, at - reach) : at], content[number - 1], reach)
            for at, number in pointers
        ]
        # A page that goes on in another begins with its number; one that was freed may list
        # it among others, in place of that.
        following = sorted({number for at, number in pointers if at % 4 == 0})
        tail = page[-reach:]
        joined += [_joined(tail, content[number - 1], reach) for number in following]
        if joined:
            yield b"\0\0".join(joined)


def _possible_pointers(page: Any, pages: int) -> list[tuple[int, int]]:
    """Return where numbers of pages may stand in a page, and those numbers."""
    wide = page.astype(np.int64)
    numbers = (wide[:-3] << 24) | (wide[1:-2] << 16) | (wide[2:-1] << 8) | wide[3:]
    # The two upper bytes of most numbers are zero, as much else is.
    positions = np.flatnonzero((numbers >= 2) & (numbers <= pages))
    return [(int(at), int(numbers[at])) for at in positions]


def _joined(before: Any, following: Any, reach: int) -> bytes:
    return bytes(before.tobytes() + following[4 : 4 + reach].tobytes())
