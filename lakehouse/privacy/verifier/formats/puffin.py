"""Puffin: Iceberg's statistics and deletion vectors."""

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

from lakehouse.privacy.verifier.formats.compressed import decompressed
from lakehouse.privacy.verifier.record_columns import RecordColumns
from lakehouse.privacy.verifier.search_state import FilePart

MAGIC = b"PFA1"
_TAIL = struct.Struct("<iI4s")
_PAYLOAD_IS_COMPRESSED = 1
_KEEPS_POSITIONS = "deletion-vector-v1"


def read_puffin(file: BinaryIO, size_bytes: int, part: FilePart) -> None:
    """Search the footer and each blob, decompressed.

    :raises ValueError: where the file is none, or damaged.
    """
    footer = _footer(file, size_bytes)
    part.search_block(footer)
    content = json.loads(footer)
    columns = RecordColumns(part.outside_of_rows())
    columns.add(content, None)
    columns.flush()
    for number, blob in enumerate(content["blobs"]):
        _search_blob(file, blob, part.within(f"blob {number}"))


def _footer(file: BinaryIO, size_bytes: int) -> bytes:
    file.seek(size_bytes - _TAIL.size)
    payload_bytes, flags, magic = _TAIL.unpack(file.read(_TAIL.size))
    begin = size_bytes - _TAIL.size - payload_bytes
    if magic != MAGIC or payload_bytes < 0 or begin < len(MAGIC):
        raise ValueError("its last bytes are no end of a Puffin file")
    file.seek(begin)
    payload = file.read(payload_bytes)
    return decompressed(payload, "lz4") if flags & _PAYLOAD_IS_COMPRESSED else payload


def _search_blob(file: BinaryIO, blob: Mapping[str, Any], part: FilePart) -> None:
    file.seek(blob["offset"])
    content = file.read(blob["length"])
    codec = blob.get("compression-codec")
    part.search_block(decompressed(content, codec) if codec else content)
    if blob["type"] != _KEEPS_POSITIONS:
        fields = ", ".join(map(str, blob.get("fields", ())))
        what = f"a blob of type {blob['type']} of the fields {fields}: it may hold hashes"
        part.gap("not provable", what, is_blocking=False)
