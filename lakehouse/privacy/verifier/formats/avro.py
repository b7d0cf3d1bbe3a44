"""Avro: data files, and Iceberg's manifests with their bounds and partitions."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, BinaryIO
from uuid import UUID

import fastavro

from lakehouse.privacy.verifier.record_columns import RecordColumns
from lakehouse.privacy.verifier.search_state import FilePart

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOUNDS = ("lower_bounds", "upper_bounds")


def read_avro(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search what an Avro file says, block by block.

    :raises Exception: whatever fastavro raises where it is none, or damaged.
    """
    reader = fastavro.block_reader(file)
    manifest = _Manifest.of(reader.metadata)
    columns = RecordColumns(part)
    row = 0
    for block in reader:
        # As it is once decompressed: what records lie side by side, and anything between them.
        part.search_block(block.bytes_.getvalue())
        for record in block:
            row += 1
            columns.add(record, row)
            if manifest and isinstance(record, dict):
                for path, value in manifest.values(record):
                    columns.add(value, row, path)
    columns.flush()


@dataclass(frozen=True)
class _Manifest:
    """The names and types of the fields that a manifest keeps values of."""

    fields: Mapping[int, tuple[tuple[str, ...], str]]
    partition_sources: Mapping[str, tuple[str, ...]]
    """By name of a partition field, the path of the column that it keeps as it is."""

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> "_Manifest | None":
        """Read a manifest's header; None where a file is none."""
        if "schema" not in metadata or "partition-spec" not in metadata:
            return None
        fields = dict(_fields(json.loads(metadata["schema"]), ()))
        spec = json.loads(metadata["partition-spec"])
        specs = spec["fields"] if isinstance(spec, dict) else spec
        sources = {
            field["name"]: fields[field["source-id"]][0]
            for field in specs
            if field["transform"] == "identity" and field["source-id"] in fields
        }
        return cls(fields, sources)

    def values(self, entry: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield the values of columns that an entry of the manifest keeps: bounds and
        partitions.
        """
        data_file = entry.get("data_file") or {}
        for name in _BOUNDS:
            for bound in _pairs(data_file.get(name)):
                path, kind = self.fields.get(bound[0], ((), "binary"))
                yield path, _bound(bound[1], kind)
        for name, value in (data_file.get("partition") or {}).items():
            if name in self.partition_sources:
                yield self.partition_sources[name], value


def _fields(
    kind: Any, path: tuple[str, ...]
) -> Iterator[tuple[int, tuple[tuple[str, ...], str]]]:
    """Yield the fields of a schema of Iceberg by id, with those that are nested."""
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


def _pairs(bounds: Any) -> Iterator[tuple[int, bytes]]:
    """Yield a map of bounds, which Avro has as a list of pairs where keys are no text."""
    if isinstance(bounds, dict):
        yield from bounds.items()
    else:
        yield from ((pair["key"], pair["value"]) for pair in bounds or ())


def _bound(content: bytes, kind: str) -> Any:
    """Return a bound as a value of its type (Iceberg's spec, appendix D); bytes where it has
    none.
    """
    numbers = {"int": "<i", "long": "<q", "float": "<f", "double": "<d"}
    if kind in numbers and len(content) == struct.calcsize(numbers[kind]):
        return struct.unpack(numbers[kind], content)[0]
    if kind == "long" and len(content) == 4:
        # Kept from when the column was an int.
        return struct.unpack("<i", content)[0]
    if kind == "string":
        return content.decode("utf-8", "replace")
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=struct.unpack("<i", content)[0])
    if kind in ("timestamp", "timestamptz"):
        return _EPOCH + timedelta(microseconds=struct.unpack("<q", content)[0])
    if kind == "uuid":
        return UUID(bytes=content)
    if kind.startswith("decimal"):
        scale = int(kind.rpartition(",")[2].rstrip(") "))
        return Decimal(int.from_bytes(content, "big", signed=True)).scaleb(-scale)
    return content
