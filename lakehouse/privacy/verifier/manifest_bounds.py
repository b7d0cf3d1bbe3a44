"""Values of columns in Iceberg's manifests: bounds and partitions."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {"float": "<f", "double": "<d"}
_Column = tuple[tuple[str, ...], str]
"""Path and type."""


@dataclass(frozen=True)
class ManifestHeader:
    """The columns of the bounds and partitions in a manifest."""

    fields: Mapping[int, _Column]
    partitions: tuple[_Column | None, ...]
    """None for a transform other than identity."""


def read_header(metadata: Mapping[str, str]) -> ManifestHeader | None:
    """Return the header of a manifest; None for another Avro file."""
    if "schema" not in metadata or "partition-spec" not in metadata:
        return None
    fields = dict(_fields(json.loads(metadata["schema"]), ()))
    spec = json.loads(metadata["partition-spec"])
    partitions = (
        fields.get(field["source-id"]) if field["transform"] == "identity" else None
        for field in (spec["fields"] if isinstance(spec, dict) else spec)
    )
    return ManifestHeader(fields, tuple(partitions))


def bounds_of_entry(
    entry: Mapping[str, Any], header: ManifestHeader
) -> Iterator[tuple[tuple[str, ...], Any]]:
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


def _fields(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[int, _Column]]:
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
    if kind in ("int", "long", "date", "timestamp", "timestamptz"):
        # A long has four bytes in files that were written when the column was an int.
        number = int.from_bytes(content, "little", signed=True)
        if kind == "date":
            return date(1970, 1, 1) + timedelta(days=number)
        return number if kind in ("int", "long") else _EPOCH + timedelta(microseconds=number)
    if kind in _NUMBERS and len(content) == struct.calcsize(_NUMBERS[kind]):
        return struct.unpack(_NUMBERS[kind], content)[0]
    if kind == "string":
        return content.decode("utf-8", "replace")
    if kind == "uuid":
        return str(UUID(bytes=content))
    if kind.startswith("decimal"):
        scale = int(kind.rpartition(",")[2].rstrip(") "))
        return Decimal(int.from_bytes(content, "big", signed=True)).scaleb(-scale)
    return content
