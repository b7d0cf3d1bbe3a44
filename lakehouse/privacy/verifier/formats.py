"""One file is searched: its stored bytes, and its content once it is decoded."""

import codecs
import gzip
import json
import re
import struct
import tempfile
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lakehouse.privacy.verifier.file_part import FilePart
from lakehouse.privacy.verifier.places import DELIVERED_PLACES
from lakehouse.privacy.verifier.records import (
    left_open,
    read_avro,
    read_csv,
    read_json,
    read_sqlite,
)

_MAGICS = (
    (b"PAR1", "parquet"),
    (b"Obj\x01", "avro"),
    (b"PFA1", "puffin"),
    (b"SQLite format 3\0", "sqlite"),
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"LZ4Block", "Spark blocks"),
    (b"\x82SNAPPY\0", "Spark blocks"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
)
_ENDINGS = {
    ".parquet": "parquet",
    ".avro": "avro",
    ".orc": "orc",
    ".puffin": "puffin",
    ".stats": "puffin",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".gz": "gzip",
    ".zst": "zstd",
    ".zip": "zip",
    ".json": "json",
    ".jsonl": "json",
    ".csv": "csv",
}
_TEXTS = ("json", "csv", "bytes")
_TEXT_LIKE = re.compile(rb"[\x20-\x7e\r\n\t]*")
_HEAD_BYTES = 64
_MAX_DEPTH = 3
"""How often a compressed file is unpacked."""
MAX_UNPACKED_BYTES = 1 << 36
_IN_MEMORY_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_BATCH_ROWS = 128 * 1024


def inspect(file: BinaryIO, size_bytes: int, part: FilePart) -> None:
    """Search a file that can be read from any position.

    A file that cannot be decoded is a gap, whatever the error; its bytes were searched.
    """
    file.seek(0)
    expected = _kind_by_name(part.key)
    kind = _kind(file.read(min(_HEAD_BYTES, size_bytes)), expected, part)
    file.seek(0)
    part.search_file(file, size_bytes)
    if not part.depth:
        part.state.files_by_kind[kind] += 1
        part.state.bytes_by_kind[kind] += size_bytes
    if not size_bytes:
        return
    if expected not in _TEXTS and kind != expected:
        part.gap("not readable", f"its name says {expected}, and its first bytes do not")
    file.seek(0)
    try:
        _decode(file, size_bytes, kind, part)
    except Exception as error:
        part.gap("not readable", f"{kind} that cannot be decoded ({type(error).__name__})")


def _kind_by_name(key: str) -> str:
    kinds = (kind for ending, kind in _ENDINGS.items() if key.lower().endswith(ending))
    return next(kinds, "bytes")


def _kind(head: bytes, expected: str, part: FilePart) -> str:
    for magic, kind in _MAGICS:
        # A text can begin with the same letters.
        if head.startswith(magic) and not (kind == "bzip2" and _TEXT_LIKE.fullmatch(head)):
            return kind
    if head.startswith(b"ORC") and not _TEXT_LIKE.fullmatch(head):
        return "orc"
    if expected in ("json", "csv"):
        return expected
    if head.lstrip()[:1] in (b"{", b"["):
        return "json"
    return "csv" if part.place in DELIVERED_PLACES else "bytes"


def _decode(file: BinaryIO, size_bytes: int, kind: str, part: FilePart) -> None:
    if kind in _STREAMS:
        stem, dot, _ = part.key.removesuffix(".metadata.json").rpartition(".")
        key = part.key if kind == "UTF-16" or not dot else stem
        _inspect_unpacked(_STREAMS[kind](file), part.unpacked(kind, key))
    elif kind == "zip":
        with zipfile.ZipFile(file) as archive:
            for item in archive.infolist():
                name = part.masked(item.filename, "name in an archive")
                with archive.open(item) as member:
                    _inspect_unpacked(member, part.unpacked(f"zip {name}", item.filename))
    elif kind in ("lz4", "xz", "bzip2"):
        part.gap("not looked into", f"{kind}, which is not decoded")
    elif kind == "Spark blocks":
        what = "what a Spark spilled; only its bytes were searched"
        part.gap("not looked into", what, is_blocking=False)
    elif kind in _READERS:
        _READERS[kind](file, size_bytes, part)


def _inspect_unpacked(stream: Any, part: FilePart) -> None:
    """Unpack a stream and search its content, also of a damaged one."""
    if part.depth > _MAX_DEPTH:
        part.gap("not looked into", f"it is compressed more than {_MAX_DEPTH} times")
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as unpacked:
        try:
            while chunk := stream.read(_CHUNK_BYTES):
                unpacked.write(chunk)
                if unpacked.tell() > MAX_UNPACKED_BYTES:
                    raise ValueError("unpacks to too many bytes")
        finally:
            inspect(cast(BinaryIO, unpacked), unpacked.tell(), part)


_STREAMS: dict[str, Callable[[BinaryIO], Any]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    "zstd": lambda file: pa.CompressedInputStream(left_open(file), "zstd"),
    "UTF-16": lambda file: codecs.EncodedFile(file, "utf-8", "utf-16", "replace"),
}


def _read_parquet(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search the columns of a Parquet file, by row group."""
    with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        names = [_name(field, b"PARQUET:field_id", part) for field in parquet.schema_arrow]
        _note_bloom_filters(parquet.metadata, part)
        for batch in parquet.iter_batches(_BATCH_ROWS):
            for name, column in zip(names, batch.columns, strict=True):
                part.search_column((name,), column)


def _note_bloom_filters(metadata: pq.FileMetaData, part: FilePart) -> None:
    chunks = (
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in range(metadata.num_columns)
    )
    for chunk in chunks:
        if chunk.bloom_filter_offset is not None:  # type: ignore[attr-defined]
            what = f"the Bloom filter of column {chunk.path_in_schema} contains hashes"
            part.gap("not provable", what, is_blocking=False)


def _read_orc(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search the columns of an ORC file, by stripe."""
    reader = orc.ORCFile(file)
    for stripe in range(reader.nstripes):
        batch = reader.read_stripe(stripe)
        for field, column in zip(batch.schema, batch.columns, strict=True):
            part.search_column((_name(field, b"iceberg.id", part),), column)


def _name(field: "pa.Field[Any]", id_key: bytes, part: FilePart) -> str:
    return part.column_name(field.name, (field.metadata or {}).get(id_key))


_PUFFIN_TAIL = struct.Struct("<iI4s")


def _read_puffin(file: BinaryIO, size_bytes: int, part: FilePart) -> None:
    """Note the sketches of columns, which contain hashes; deletion vectors have positions."""
    file.seek(size_bytes - _PUFFIN_TAIL.size)
    payload_bytes, _, magic = _PUFFIN_TAIL.unpack(file.read(_PUFFIN_TAIL.size))
    if magic != b"PFA1":
        raise ValueError("its last bytes are no end of a Puffin file")
    file.seek(size_bytes - _PUFFIN_TAIL.size - payload_bytes)
    for blob in json.loads(file.read(payload_bytes))["blobs"]:
        if blob["type"] != "deletion-vector-v1":
            what = f"a blob of type {blob['type']} of fields {blob['fields']} contains hashes"
            part.gap("not provable", what, is_blocking=False)


_READERS: dict[str, Callable[[BinaryIO, int, FilePart], None]] = {
    "parquet": _read_parquet,
    "orc": _read_orc,
    "avro": read_avro,
    "puffin": _read_puffin,
    "sqlite": read_sqlite,
    "json": read_json,
    "csv": read_csv,
}
