"""Position delete files with the new paths of their data files.

Equality delete files contain no paths, and are copied unchanged.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from lakehouse.errors import LakehouseError

_PATH = "file_path"
_MAGIC = b"PFA1"
_REFERENCED = "referenced-data-file"
_FOOTER_BYTES = 12
"""Size of the end of a Puffin file: payload size (4), flags (4) and magic (4)."""


@dataclass(frozen=True)
class MovedDeletes:
    """A rewritten delete file."""

    content: bytes
    low: bytes
    """The least path in it, in the form of manifest bounds."""
    high: bytes


def moved_deletes(
    path: str, file_format: str, content: bytes, move: Callable[[str], str]
) -> MovedDeletes:
    """Return a position delete file with other paths.

    :param move: returns the new path of a data file.
    :raises LakehouseError: if its format is not supported.
    """
    if file_format == "PARQUET":
        return _moved_parquet(content, move)
    if file_format == "PUFFIN":
        return MovedDeletes(moved_deletion_vectors(content, move), b"", b"")
    raise LakehouseError(
        f"the delete file {path} has the format {file_format}; expected PARQUET or"
        " PUFFIN, whose paths can be rewritten.",
        next_step=(
            "Rewrite the rows without them (`CALL lakehouse.system.rewrite_data_files"
            "(table => …, options => map('delete-file-threshold', '1'))`), expire earlier"
            " snapshots, and copy again."
        ),
    )


def _moved_parquet(content: bytes, move: Callable[[str], str]) -> MovedDeletes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: Any = pq.read_table(BytesIO(content))
    old = rows[_PATH].combine_chunks().dictionary_encode()
    paths = [move(path) for path in old.dictionary.to_pylist()]
    moved = pa.array(paths, pa.string()).take(old.indices)
    at = rows.schema.get_field_index(_PATH)
    rows = rows.set_column(at, rows.schema.field(at), moved.cast(rows.schema.field(at).type))
    written = BytesIO()
    # Paths outside of the old location can have another order now.
    pq.write_table(rows.sort_by([(_PATH, "ascending"), ("pos", "ascending")]), written)
    return MovedDeletes(written.getvalue(), *_bounds(paths))


def _bounds(paths: list[str]) -> tuple[bytes, bytes]:
    names = [path.encode() for path in paths]
    return min(names, default=b""), max(names, default=b"")


def moved_deletion_vectors(content: bytes, move: Callable[[str], str]) -> bytes:
    """Return a Puffin file with other paths in its footer; its blobs are unchanged.

    See https://iceberg.apache.org/puffin-spec/.
    """
    size = int.from_bytes(content[-_FOOTER_BYTES:][:4], "little")
    flags = content[-_FOOTER_BYTES:][4:8]
    begin = len(content) - _FOOTER_BYTES - size
    if content[-4:] != _MAGIC or content[begin - 4 : begin] != _MAGIC or any(flags):
        raise LakehouseError(
            "A file of deletion vectors has a compressed footer, or none; expected a plain one,"
            " as Iceberg writes it.",
            next_step="Compact the table, expire its old snapshots, and copy again.",
        )
    footer = json.loads(content[begin : begin + size])
    for blob in footer["blobs"]:
        properties = blob.get("properties", {})
        if _REFERENCED in properties:
            properties[_REFERENCED] = move(properties[_REFERENCED])
    payload = json.dumps(footer).encode()
    length = len(payload).to_bytes(4, "little")
    return content[:begin] + payload + length + flags + _MAGIC
