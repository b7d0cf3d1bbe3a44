"""One file is searched: its bytes as they are, then what they say once decoded."""

import tempfile
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from lakehouse.privacy.verifier.file_kinds import (
    HEAD_BYTES,
    TEXTS,
    kind_by_content,
    kind_by_name,
)
from lakehouse.privacy.verifier.formats.avro import read_avro
from lakehouse.privacy.verifier.formats.compressed import is_stream, members, stream_chunks
from lakehouse.privacy.verifier.formats.csv_text import read_csv
from lakehouse.privacy.verifier.formats.json_text import read_json
from lakehouse.privacy.verifier.formats.orc import read_orc
from lakehouse.privacy.verifier.formats.parquet import read_parquet
from lakehouse.privacy.verifier.formats.puffin import read_puffin
from lakehouse.privacy.verifier.formats.sqlite import read_sqlite
from lakehouse.privacy.verifier.places import DELIVERED_PLACES
from lakehouse.privacy.verifier.roots import is_database_file
from lakehouse.privacy.verifier.search_state import FilePart

DEEPEST = 3
"""How often what is packed is unpacked: a gzip in a gzip, in an archive."""
MOST_UNPACKED_BYTES = 1 << 36
"""Of one file: what unpacks to more is no data, and is said to be not read."""
_IN_MEMORY_BYTES = 32 * 1024 * 1024

_READERS: dict[str, Callable[[BinaryIO, int, FilePart], None]] = {
    "parquet": read_parquet,
    "orc": read_orc,
    "avro": read_avro,
    "puffin": read_puffin,
    "sqlite": read_sqlite,
    "json": read_json,
    "csv": read_csv,
}
_ARCHIVES = ("zip", "tar")
_NOT_DECODED = ("snappy",)
"""What nothing of the lakehouse writes by its own settings."""


class UnpacksToTooMuch(Exception):
    """What is packed in a file is larger than anything that the lakehouse keeps."""


def inspect(file: BinaryIO, size_bytes: int, part: FilePart) -> None:
    """Search a file that can be read from any position.

    What cannot be decoded is said to be so, whatever went wrong: its bytes were searched.
    """
    file.seek(0)
    head = file.read(min(HEAD_BYTES, size_bytes))
    by_content, by_name = kind_by_content(head), kind_by_name(part.key)
    kind = _kind(by_content, by_name, part.place)
    is_database = by_content == "sqlite" or is_database_file(part.key)
    part.search_file(file, size_bytes, is_database=is_database)
    if not part.depth:
        part.state.files_by_kind[kind] += 1
        part.state.bytes_by_kind[kind] += size_bytes
    if not size_bytes:
        return
    if by_name not in TEXTS and kind != by_name:
        part.gap("not readable", f"its name says {by_name}, and its first bytes do not")
    _decode(file, size_bytes, kind, by_name, part)


def _kind(by_content: str, by_name: str, place: str) -> str:
    if by_content != "bytes" and not (by_content == "json" and by_name == "csv"):
        return by_content
    if by_name in ("json", "csv"):
        return by_name
    return "csv" if place in DELIVERED_PLACES else "bytes"


def _decode(file: BinaryIO, size_bytes: int, kind: str, by_name: str, part: FilePart) -> None:
    file.seek(0)
    try:
        if is_stream(kind):
            packed = part.unpacked(kind, _without_ending(part.key))
            _inspect_packed(stream_chunks(file, kind), packed)
        elif kind in _ARCHIVES:
            for name, chunks in members(file, kind):
                member = part.masked(name, "name in an archive")
                _inspect_packed(chunks, part.unpacked(f"{kind} {member}", name))
        elif kind in _NOT_DECODED:
            part.gap("not looked into", f"a stream of {kind}, which nothing here decodes")
        elif kind in _READERS:
            _READERS[kind](file, size_bytes, part)
    except Exception as error:
        # A file of JSON that somebody named otherwise, or a log that begins with a bracket.
        if kind == "json" and by_name != "json":
            return
        part.gap("not readable", f"{kind} that cannot be decoded ({type(error).__name__})")


def _inspect_packed(chunks: Iterator[bytes], part: FilePart) -> None:
    """Unpack what is packed, as far as it can be, and search it."""
    if part.depth > DEEPEST:
        part.gap("not looked into", f"it is packed more than {DEEPEST} times")
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as unpacked:
        try:
            for chunk in chunks:
                unpacked.write(chunk)
                if unpacked.tell() > MOST_UNPACKED_BYTES:
                    raise UnpacksToTooMuch
        finally:
            inspect(cast(BinaryIO, unpacked), unpacked.tell(), part)


def _without_ending(key: str) -> str:
    """Return the name of what is compressed; Iceberg also writes `.gz.metadata.json`."""
    if key.endswith(".gz.metadata.json"):
        return f"{key.removesuffix('.gz.metadata.json')}.metadata.json"
    stem, dot, _ = key.rpartition(".")
    return stem if dot else key
