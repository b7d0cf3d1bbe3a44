"""A person whose values have all that is hard to find, and a judge that searches for them in
every byte.
"""

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lakehouse.tables.person import Person

EMAIL = "zoë.o'neil@example.com"
PASSPORT = "4711081512"
SHORT_ID = "7"
NEIGHBOUR = "ben@example.com"
PERSON = Person(
    "customer_id",
    frozenset({SHORT_ID, " 007 "}),
    {"email": frozenset({EMAIL}), "passport": frozenset({PASSPORT})},
)


def traces(home: Path) -> list[str]:
    """Return the files below a home that have a byte of the person's e-mail or passport,
    compressed or not.
    """
    return sorted(
        str(file.relative_to(home))
        for file in home.rglob("*")
        if file.is_file() and any(map(_has_person, _contents(file)))
    )


def _contents(file: Path) -> Iterator[bytes]:
    content = file.read_bytes()
    yield content
    if content.startswith(b"\x1f\x8b"):
        yield gzip.decompress(content)
    if content.startswith(b"SQLite format 3\x00"):
        yield from _unpacked_blobs(file)


def _unpacked_blobs(file: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(file)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE name = 'snapshots'"
        ).fetchall()
        if tables:
            for (body,) in connection.execute("SELECT snapshot_body FROM snapshots"):
                yield zlib.decompress(body)


def _has_person(content: bytes) -> bool:
    return any(pattern in content for pattern in _PATTERNS)


_PATTERNS = [
    form
    for value in (EMAIL, PASSPORT)
    for form in (value.encode(), json.dumps(value)[1:-1].encode())
]
