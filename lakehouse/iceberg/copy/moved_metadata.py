"""Metadata of a table with new paths: manifests, manifest lists and metadata.json files."""

import json
from collections.abc import Mapping
from typing import Any

from lakehouse.iceberg.copy.avro_records import Record, change_records
from lakehouse.iceberg.copy.moved_deletes import MovedDeletes
from lakehouse.iceberg.copy.moved_paths import MovedPaths
from lakehouse.iceberg.copy.source_files import POSITION_DELETES
from lakehouse.iceberg.metadata.live_files import DELETED_FROM_PATH


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
    moved["properties"] = paths.of_properties(metadata.get("properties") or {})
    for snapshot in moved.get("snapshots") or []:
        snapshot["manifest-list"] = paths.of(snapshot["manifest-list"])
    for entry in moved.get("metadata-log") or []:
        entry["metadata-file"] = paths.of_metadata_file(entry["metadata-file"])
    # Upkeep computes statistics again.
    moved.pop("statistics", None)
    moved.pop("partition-statistics", None)
    return json.dumps(moved, ensure_ascii=False).encode()
