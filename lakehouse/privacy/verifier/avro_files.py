"""Avro files, with the bounds and partitions of columns in Iceberg's manifests."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, BinaryIO, cast
from uuid import UUID

import fastavro
import pyarrow as pa

from lakehouse.privacy.verifier.file_part import FilePart
from lakehouse.privacy.verifier.records import RecordFields

_Path = tuple[str, ...]
_Column = tuple[_Path, str]
"""Path and type."""


@dataclass(frozen=True)
class _ManifestHeader:
    """The columns of the bounds and partitions in a manifest."""

    fields: Mapping[int, _Column]
    partitions: tuple[_Column | None, ...]
    """None for a transform other than identity."""


def read_avro(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search decoded blocks, declared fields, and the bounds in Iceberg's manifests.

    :raises Exception: whatever fastavro raises for a damaged file.
    """
    reader = fastavro.block_reader(file)
    schema = cast(dict[str, Any], reader.writer_schema)
    header = _read_header(reader.metadata)
    is_manifest_list = schema.get("name") == "manifest_file"
    names = {
        field["name"]: part.column_name(field["name"], field.get("field-id"))
        for field in schema.get("fields", ())
    }
    fields = RecordFields(part)
    for block in reader:
        part.search_bytes(block.bytes_.getvalue())  # type: ignore[attr-defined]
        for record in () if is_manifest_list else block:
            if header is not None:
                for path, bound in _bounds(cast(dict[str, Any], record), header):
                    part.search_column(path, pa.array([bound]), "bound")
            elif isinstance(record, dict):
                fields.add_row({names[name]: value for name, value in record.items()})
    fields.flush()


def _read_header(metadata: Mapping[str, str]) -> _ManifestHeader | None:
    """Return the header of a manifest; None for another Avro file."""
    if "schema" not in metadata or "partition-spec" not in metadata:
        return None
    fields = dict(_fields(json.loads(metadata["schema"]), ()))
    spec = json.loads(metadata["partition-spec"])
    partitions = (
        fields.get(field["source-id"]) if field["transform"] == "identity" else None
        for field in (spec["fields"] if isinstance(spec, dict) else spec)
    )
    return _ManifestHeader(fields, tuple(partitions))


def _bounds(entry: Mapping[str, Any], header: _ManifestHeader) -> Iterator[tuple[_Path, Any]]:
    """Yield the values of columns in an entry of a manifest."""
    data_file = entry.get("data_file") or {}
    for name in ("lower_bounds", "upper_bounds"):
        # Avro stores a map with integer keys as a list of pairs.
        for pair in data_file.get(name) or ():
            path, kind = header.fields.get(pair["key"], ((), "binary"))
            yield path, _bound(pair["value"], kind)
    partition = data_file.get("partition") or {}
    # Avro escapes the names, so they are matched by position.
    for value, column in zip(partition.values(), header.partitions, strict=True):
        if column and value is not None:
            yield column[0], value


def _fields(kind: Any, path: _Path) -> Iterator[tuple[int, _Column]]:
    """Yield the fields of an Iceberg schema by id, nested ones too."""
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", ()):
        inner = (*path, field["name"])
        yield field["id"], (inner, str(field["type"]))
        yield from _fields(field["type"], inner)
    for part in ("element", "key", "value"):
        if f"{part}-id" in kind:
            yield kind[f"{part}-id"], (path, str(kind[part]))
            yield from _fields(kind[part], path)


def _bound(content: bytes, kind: str) -> Any:
    """Return a bound as a value of its type (Iceberg's specification, appendix D)."""
    if kind in ("int", "long"):
        # A long has four bytes in files that were written when the column was an int.
        return int.from_bytes(content, "little", signed=True)
    if kind == "date":
        days = int.from_bytes(content, "little", signed=True)
        return date(1970, 1, 1) + timedelta(days=days)
    if kind == "string":
        return content.decode("utf-8", "replace")
    if kind == "uuid":
        return str(UUID(bytes=content))
    if kind.startswith("decimal"):
        scale = int(kind.rpartition(",")[2].rstrip(") "))
        return Decimal(int.from_bytes(content, "big", signed=True)).scaleb(-scale)
    return content
