"""Metadata and delete files of a copied table, with the paths of its new location."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.copy.files_to_copy import POSITION_DELETES, Record, change_records
from lakehouse.iceberg.metadata.manifests import DELETED_FROM_PATH
from lakehouse.iceberg.metadata.table_locations import LOCATION_PROPERTIES, folder_key, path_key

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
    names = [path.encode() for path in paths]
    return MovedDeletes(written.getvalue(), min(names, default=b""), max(names, default=b""))


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


_EXTERNAL_FOLDER = "data/elsewhere"
_PLACES = (*LOCATION_PROPERTIES, "write.folder-storage.path")
"""Properties that put files outside of the table's location."""


@dataclass(frozen=True)
class MovedPaths:
    """The old and the new location of a table.

    Files keep their path below the location. Files outside of it are moved into it, with one
    folder per original folder.
    """

    location: str
    new_location: str

    def of(self, path: str) -> str:
        """Return the new path of a file, from any form of its path."""
        key, folder = path_key(path), folder_key(self.location)
        if key.startswith(folder):
            return f"{self.new_location}/{key.removeprefix(folder)}"
        parent, _, name = key.rpartition("/")
        folder_hash = sha256(parent.encode()).hexdigest()
        return f"{self.new_location}/{_EXTERNAL_FOLDER}/{folder_hash}/{name}"

    def of_metadata_file(self, path: str) -> str:
        """Return the new path of a metadata.json file, which is written uncompressed."""
        return self.of(path).replace(".gz.metadata.json", ".metadata.json")


def moved_manifest(
    content: bytes, paths: MovedPaths, deletes: Mapping[str, MovedDeletes]
) -> bytes:
    """Return a manifest with other paths.

    :param deletes: rewritten delete files, by old path.
    """

    def change(entry: Record) -> None:
        file = entry["data_file"]
        moved = deletes.get(file["file_path"])
        file["file_path"] = paths.of(file["file_path"])
        if file.get("referenced_data_file"):
            file["referenced_data_file"] = paths.of(file["referenced_data_file"])
        if moved is not None:
            file["file_size_in_bytes"] = len(moved.content)
        if file.get("content", 0) == POSITION_DELETES:
            _change_bounds(file, moved)

    return change_records(content, change)


def _change_bounds(file: Record, moved: MovedDeletes | None) -> None:
    """Set the path bounds of a delete file; removed if it no longer exists."""
    for name in ("lower_bounds", "upper_bounds"):
        bounds = file.get(name) or []
        for bound in [bound for bound in bounds if bound["key"] == DELETED_FROM_PATH]:
            if moved is None:
                bounds.remove(bound)
            else:
                bound["value"] = moved.low if name == "lower_bounds" else moved.high


def moved_manifest_list(
    content: bytes, paths: MovedPaths, length_bytes: Mapping[str, int]
) -> bytes:
    """Return a manifest list with other paths.

    :param length_bytes: new lengths of manifests, by old path.
    """

    def change(manifest: Record) -> None:
        manifest["manifest_length"] = length_bytes[manifest["manifest_path"]]
        manifest["manifest_path"] = paths.of(manifest["manifest_path"])

    return change_records(content, change)


def moved_metadata(metadata: Mapping[str, Any], paths: MovedPaths) -> bytes:
    """Return a metadata.json file with other paths; unknown fields are unchanged."""
    moved = json.loads(json.dumps(metadata))
    moved["location"] = paths.new_location
    properties = metadata.get("properties") or {}
    moved["properties"] = {
        name: value for name, value in properties.items() if name not in _PLACES
    }
    for snapshot in moved.get("snapshots") or []:
        snapshot["manifest-list"] = paths.of(snapshot["manifest-list"])
    for entry in moved.get("metadata-log") or []:
        entry["metadata-file"] = paths.of_metadata_file(entry["metadata-file"])
    # Their files name the old location, and Spark does not need them.
    moved.pop("statistics", None)
    moved.pop("partition-statistics", None)
    return json.dumps(moved, ensure_ascii=False).encode()
