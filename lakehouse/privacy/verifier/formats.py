"""One file is searched: its stored bytes, and its decoded content."""

import codecs
import gzip
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from io import IOBase
from typing import Any, BinaryIO, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lakehouse.privacy.verifier.file_part import FilePart
from lakehouse.privacy.verifier.record_search import (
    RecordFields,
    read_csv,
    read_json,
    read_sqlite,
)


def read_avro(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search decoded blocks, declared fields, and the bounds in Iceberg's manifests.

    :raises Exception: whatever fastavro raises for a damaged file.
    """
    reader = fastavro.block_reader(file)
    schema = cast(dict[str, Any], reader.writer_schema)
    is_manifest = "partition-spec" in reader.metadata
    declared = json.loads(reader.metadata["schema"])["fields"] if is_manifest else ()
    types = {field["id"]: str(field["type"]) for field in declared}
    is_manifest_list = schema.get("name") == "manifest_file"
    names = {
        field["name"]: part.column_name(field["name"], field.get("field-id"))
        for field in schema.get("fields", ())
    }
    fields = RecordFields(part)
    for block in reader:
        part.search_bytes(block.bytes_.getvalue())  # type: ignore[attr-defined]
        for record in cast(Iterable[dict[str, Any]], () if is_manifest_list else block):
            if is_manifest:
                _add_entry(record["data_file"], types, part, fields)
            elif isinstance(record, dict):
                fields.add_row({names[name]: value for name, value in record.items()})
    fields.flush()


def _add_entry(
    data_file: Mapping[str, Any], types: Mapping[int, str], part: FilePart, fields: RecordFields
) -> None:
    """Add the partition and the bounds in an entry of a manifest."""
    fields.add_row(data_file["partition"])
    for name in ("lower_bounds", "upper_bounds"):
        # Avro stores a map with integer keys as a list of pairs.
        for pair in data_file.get(name) or ():
            bound = _bound(pair["value"], types.get(pair["key"], ""))
            fields.add_row({part.fields.get(pair["key"], ""): bound})


def _bound(content: bytes, kind: str) -> Any:
    """Return a bound as a value of its type (Iceberg's specification, appendix D)."""
    if kind in ("int", "long"):
        return int.from_bytes(content, "little", signed=True)
    if kind.startswith("decimal"):
        scale = int(kind.rpartition(",")[2].rstrip(") "))
        return Decimal(int.from_bytes(content, "big", signed=True)).scaleb(-scale)
    return content.decode("utf-8", "replace")


_MAGICS = (
    (b"PAR1", "parquet"),
    (b"Obj\x01", "avro"),
    (b"SQLite format 3\0", "sqlite"),
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"ORC", "orc"),
)
_MAGICS_OF_TEXTS = ("bzip2", "orc")
"""A text can begin with the same letters."""
_NOT_DECODED = ("lz4", "xz", "bzip2")
_ENDINGS = {
    ".parquet": "parquet",
    ".avro": "avro",
    ".orc": "orc",
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
    key = part.key.lower()
    expected = next((kind for end, kind in _ENDINGS.items() if key.endswith(end)), "bytes")
    kind = _kind(file.read(min(_HEAD_BYTES, size_bytes)), expected, part)
    file.seek(0)
    part.search_file(file, size_bytes)
    if not part.depth:
        part.state.files += 1
        part.state.size_bytes += size_bytes
    if not size_bytes:
        return
    if expected not in _TEXTS and kind != expected:
        what = f"its name says {expected}, and its first bytes do not"
        part.add_gap("not readable", what)
    file.seek(0)
    try:
        _decode(file, size_bytes, kind, part)
    except Exception as error:
        what = f"{kind} that cannot be decoded ({type(error).__name__})"
        part.add_gap("not readable", what)


def _kind(head: bytes, expected: str, part: FilePart) -> str:
    is_text_like = _TEXT_LIKE.fullmatch(head)
    for magic, kind in _MAGICS:
        if head.startswith(magic) and not (kind in _MAGICS_OF_TEXTS and is_text_like):
            return kind
    if not part.is_delivered:
        return "bytes"
    if expected in ("json", "csv"):
        return expected
    return "json" if head.lstrip()[:1] in (b"{", b"[") else "csv"


def _decode(file: BinaryIO, size_bytes: int, kind: str, part: FilePart) -> None:
    if kind in _STREAMS:
        stem, dot, _ = part.key.rpartition(".")
        key = part.key if kind == "UTF-16" or not dot else stem
        _inspect_unpacked(_STREAMS[kind](file), part.unpacked(kind, key))
    elif kind == "zip":
        with zipfile.ZipFile(file) as archive:
            for item in archive.infolist():
                name = part.masked(item.filename)
                with archive.open(item) as member:
                    _inspect_unpacked(
                        member, part.unpacked(f"zip {name}", f"{part.key}/{item.filename}")
                    )
    elif kind in _NOT_DECODED:
        part.add_gap("not looked into", f"{kind}, which is not decoded")
    elif kind in _READERS:
        _READERS[kind](file, size_bytes, part)


def _inspect_unpacked(stream: Any, part: FilePart) -> None:
    """Unpack a stream and search its content, also of a damaged one."""
    if part.depth > _MAX_DEPTH:
        part.add_gap("not looked into", f"it is compressed more than {_MAX_DEPTH} times")
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as unpacked:
        try:
            while chunk := stream.read(_CHUNK_BYTES):
                unpacked.write(chunk)
                if unpacked.tell() > MAX_UNPACKED_BYTES:
                    raise ValueError("unpacks to too many bytes")
        finally:
            inspect(cast(BinaryIO, unpacked), unpacked.tell(), part)


class _LeftOpen:
    """A file for Arrow, which closes what it reads."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read

    def close(self) -> None:
        """Do nothing."""


def _unpack_zstd(file: BinaryIO) -> pa.CompressedInputStream:
    source = pa.PythonFile(cast(IOBase, _LeftOpen(file)), "r")
    return pa.CompressedInputStream(source, "zstd")


_STREAMS: dict[str, Callable[[BinaryIO], Any]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    "zstd": _unpack_zstd,
    "UTF-16": lambda file: codecs.EncodedFile(file, "utf-8", "utf-16", "replace"),
}


def _read_parquet(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        for batch in parquet.iter_batches(_BATCH_ROWS):
            _search_batch(batch, parquet.schema_arrow, b"PARQUET:field_id", part)


def _read_orc(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    reader = orc.ORCFile(file)
    for stripe in range(reader.nstripes):
        batch = reader.read_stripe(stripe)
        _search_batch(batch, batch.schema, b"iceberg.id", part)


def _search_batch(
    batch: pa.RecordBatch, schema: pa.Schema, id_key: bytes, part: FilePart
) -> None:
    for field, column in zip(schema, batch.columns, strict=True):
        name = part.column_name(field.name, (field.metadata or {}).get(id_key))
        part.search_column((name,), column)


_READERS: dict[str, Callable[[BinaryIO, int, FilePart], None]] = {
    "parquet": _read_parquet,
    "orc": _read_orc,
    "avro": read_avro,
    "sqlite": read_sqlite,
    "json": read_json,
    "csv": read_csv,
}
