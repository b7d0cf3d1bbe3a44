"""Files that delete rows by the paths of their data files, with the paths that those get.

Files of equality deletes name no paths, and are copied as they are.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.copy.avro_records import Record, change_records

_PATH = "file_path"
_MAGIC = b"PFA1"
_REFERENCED = "referenced-data-file"
_FOOTER_BYTES = 12
"""Size of the payload (4), flags (4) and the magic (4), by which a Puffin file ends."""


@dataclass(frozen=True)
class MovedDeletes:
    """A file of deletes as it is to be written."""

    content: bytes
    low: bytes
    """The least of the paths that it names, as a manifest tells bounds."""
    high: bytes


def moved_deletes(
    path: str, file_format: str, content: bytes, move: Callable[[str], str]
) -> MovedDeletes:
    """Return a file of position deletes with other paths.

    :param move: gives the path that a data file gets.
    :raises LakehouseError: when nothing here writes its format.
    """
    if file_format == "PARQUET":
        return _moved_parquet(content, move)
    if file_format == "AVRO":
        return _moved_avro(content, move)
    if file_format == "PUFFIN":
        return MovedDeletes(moved_deletion_vectors(content, move), b"", b"")
    raise LakehouseError(
        f"{path} deletes rows and is of the format {file_format}; expected PARQUET, AVRO or"
        " PUFFIN, whose paths can be written anew.",
        next_step=(
            "Have the rows rewritten without them (`CALL lakehouse.system.rewrite_data_files"
            "(table => …, options => map('delete-file-threshold', '1'))`), let the snapshots"
            " before expire, and copy again."
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
    # One location takes the place of another, but what lay elsewhere may sort otherwise.
    pq.write_table(rows.sort_by([(_PATH, "ascending"), ("pos", "ascending")]), written)
    return MovedDeletes(written.getvalue(), *_bounds(paths))


def _moved_avro(content: bytes, move: Callable[[str], str]) -> MovedDeletes:
    paths: list[str] = []

    def change(record: Record) -> None:
        record[_PATH] = move(record[_PATH])
        paths.append(record[_PATH])

    return MovedDeletes(change_records(content, change), *_bounds(paths))


def _bounds(paths: list[str]) -> tuple[bytes, bytes]:
    names = [path.encode() for path in paths]
    return min(names, default=b""), max(names, default=b"")


def moved_deletion_vectors(content: bytes, move: Callable[[str], str]) -> bytes:
    """Return a Puffin file whose footer names other paths; its blobs stay where they are.

    See https://iceberg.apache.org/puffin-spec/ for its parts.
    """
    size = int.from_bytes(content[-_FOOTER_BYTES:][:4], "little")
    flags = content[-_FOOTER_BYTES:][4:8]
    begin = len(content) - _FOOTER_BYTES - size
    if content[-4:] != _MAGIC or content[begin - 4 : begin] != _MAGIC or any(flags):
        raise LakehouseError(
            "A file of deletion vectors has a compressed footer, or none; expected a plain one,"
            " as Iceberg writes it.",
            next_step="Have the table compacted, let its old snapshots expire, and copy again.",
        )
    footer = json.loads(content[begin : begin + size])
    for blob in footer["blobs"]:
        properties = blob.get("properties", {})
        if _REFERENCED in properties:
            properties[_REFERENCED] = move(properties[_REFERENCED])
    payload = json.dumps(footer).encode()
    length = len(payload).to_bytes(4, "little")
    return content[:begin] + payload + length + flags + _MAGIC
