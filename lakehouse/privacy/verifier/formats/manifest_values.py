"""What Iceberg's manifests, and the lists of them, keep of columns: bounds and partitions."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from lakehouse.privacy.verifier.search_state import PartitionColumns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOUNDS = ("lower_bounds", "upper_bounds")
_PARTITION_BOUNDS = ("lower_bound", "upper_bound")
_Path = tuple[str, ...]


@dataclass(frozen=True)
class ManifestHeader:
    """The names and types of the fields that a manifest keeps values of."""

    fields: Mapping[int, tuple[_Path, str]]
    partition_columns: PartitionColumns

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> "ManifestHeader | None":
        """Read a manifest's header; None where a file is none."""
        if "schema" not in metadata or "partition-spec" not in metadata:
            return None
        fields = dict(_fields(json.loads(metadata["schema"]), ()))
        spec = json.loads(metadata["partition-spec"])
        partition = spec["fields"] if isinstance(spec, dict) else spec
        columns = tuple(
            fields.get(field["source-id"]) if field["transform"] == "identity" else None
            for field in partition
        )
        return cls(fields, columns)

    def values(self, entry: Mapping[str, Any]) -> Iterator[tuple[_Path, Any]]:
        """Yield the values of columns that an entry of the manifest keeps."""
        data_file = entry.get("data_file") or {}
        for name in _BOUNDS:
            for field_id, bound in _pairs(data_file.get(name)):
                path, kind = self.fields.get(field_id, ((), "binary"))
                yield path, _bound(bound, kind)
        partition = data_file.get("partition") or {}
        # By position: Avro escapes the names.
        for value, column in zip(partition.values(), self.partition_columns, strict=True):
            if column:
                yield column[0], value


def list_values(
    record: Mapping[str, Any], columns: PartitionColumns
) -> Iterator[tuple[_Path, Any]]:
    """Yield the bounds of partitions that an entry of a list of manifests keeps."""
    for column, summary in zip(columns, record["partitions"] or (), strict=False):
        for name in _PARTITION_BOUNDS:
            bound = summary.get(name)
            if column and bound is not None:
                yield column[0], _bound(bound, column[1])


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
