"""Avro: data files, and Iceberg's manifests and lists of them."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import fastavro

from lakehouse.privacy.verifier.formats.manifest_values import ManifestHeader, list_values
from lakehouse.privacy.verifier.places import MANIFEST, MANIFEST_LIST
from lakehouse.privacy.verifier.record_columns import RecordColumns
from lakehouse.privacy.verifier.search_state import FilePart, PartitionColumns

_METADATA = (MANIFEST, MANIFEST_LIST)


def read_avro(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search what an Avro file says, block by block.

    :raises Exception: whatever fastavro raises where it is none, or damaged.
    """
    reader = fastavro.block_reader(file)
    header = ManifestHeader.of(reader.metadata)
    is_metadata = part.place in _METADATA
    columns = RecordColumns(part)
    own_fields = RecordColumns(part.outside_of_rows()) if is_metadata else columns
    names = {} if is_metadata else _column_names(reader.writer_schema, part)
    row = 0
    for block in reader:
        # As it is once decompressed: what records lie side by side, and anything between them.
        part.search_block(block.bytes_.getvalue())  # type: ignore[attr-defined]
        for record in block:
            row += 1
            if names and isinstance(record, dict):
                record = {names.get(name, name): value for name, value in record.items()}
            own_fields.add(record, row)
            for path, value in _kept_values(record, header, part):
                columns.add(value, row, path)
    columns.flush()
    own_fields.flush()


def _column_names(schema: Any, part: FilePart) -> dict[str, str]:
    """Return the names that the table has for the columns of a file."""
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    return {one["name"]: part.column_name(one["name"], one.get("field-id")) for one in fields}


def _kept_values(
    record: Any, header: ManifestHeader | None, part: FilePart
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what an entry of Iceberg's metadata keeps of columns."""
    if not isinstance(record, dict):
        return
    if header is not None:
        yield from header.values(record)
    elif "manifest_path" in record and record.get("partitions"):
        yield from list_values(record, _partition_columns(record, part))


def _partition_columns(record: Mapping[str, Any], part: FilePart) -> PartitionColumns:
    """Return the columns of a partition spec, which stand in the header of the manifests alone
    that a list names.
    """
    folder, spec_id = str(PurePosixPath(part.file).parent), record["partition_spec_id"]
    known = part.state.partition_columns
    if (folder, spec_id) not in known:
        columns = _columns_of_manifest(record["manifest_path"], part)
        if columns is None:
            what = "partitions of a manifest that is gone; only bytes were searched"
            part.gap("not compared", what, is_blocking=False)
            return ()
        known[folder, spec_id] = columns
    return known[folder, spec_id]


def _columns_of_manifest(path: str, part: FilePart) -> PartitionColumns | None:
    manifest = part.open_beside(PurePosixPath(path).name)
    if manifest is None:
        return None
    with manifest:
        header = ManifestHeader.of(fastavro.block_reader(manifest).metadata)
    return header.partition_columns if header else None
