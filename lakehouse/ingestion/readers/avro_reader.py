"""The rows of an Avro file, in the types that the feed declares."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from lakehouse.ingestion.readers.arrow_types import (
    TypedReader,
    json_text,
    reject_damaged_file,
    unreadable,
)
from lakehouse.ingestion.readers.byte_source import Readable, Writable, spooled
from lakehouse.ingestion.readers.row_bytes import RemovedRows
from lakehouse.tables.types import WIDEST

if TYPE_CHECKING:
    import pyarrow as pa

_call = partial(reject_damaged_file, "Avro")
_BATCH_ROWS = 4096
_SYNC_MARKER = b"lakehouse-erased"
"""Sixteen constant bytes between blocks, so that equal rows give equal files."""


class AvroReader(TypedReader):
    """One file's columns and rows."""

    def open(self, copy: IO[bytes]) -> list[str]:
        self._records = open_avro(copy)
        self._schemas = avro_fields(self._records)
        return [*self._schemas]

    def read(self, fields: list[str]) -> "Iterator[list[pa.Array[Any]]]":
        while records := _call(lambda: list(islice(self._records, _BATCH_ROWS))):
            yield [
                _call(partial(avro_column, self._schemas[field], records, field))
                for field in fields
            ]


def open_avro(copy: IO[bytes], **options: Any) -> Any:
    """Open a seekable file."""
    import fastavro

    return _call(lambda: fastavro.reader(copy, **options))


def avro_fields(reader: Any) -> "dict[str, Any]":
    """Return the Avro schema of each field."""
    schema = reader.writer_schema
    if not isinstance(schema, Mapping) or schema.get("type") != "record":
        raise unreadable("Avro", "values that are no records")
    return {field["name"]: field["type"] for field in schema["fields"]}


def avro_column(schema: Any, records: list[dict[str, Any]], field: str) -> "pa.Array[Any]":
    import pyarrow as pa

    found = arrow_of_avro(schema)
    values = [record[field] for record in records]
    return pa.array([_value(value, found) for value in values], found)


def arrow_of_avro(schema: Any) -> "pa.DataType":
    """Return the Arrow type of an Avro schema; a union of several types is text."""
    import pyarrow as pa

    if isinstance(schema, list):
        types = [part for part in schema if part != "null"]
        return arrow_of_avro(types[0]) if len(types) == 1 else pa.string()
    if isinstance(schema, str):
        schema = {"type": schema}
    kind, logical = schema["type"], schema.get("logicalType", "")
    if not isinstance(kind, str):
        return arrow_of_avro(kind)
    if logical == "decimal" and schema["precision"] <= WIDEST:
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    by_logical_type: dict[str, pa.DataType] = {
        "date": pa.date32(),
        "timestamp-millis": pa.timestamp("us", "UTC"),
        "timestamp-micros": pa.timestamp("us", "UTC"),
        "local-timestamp-millis": pa.timestamp("us"),
        "local-timestamp-micros": pa.timestamp("us"),
        "time-millis": pa.time64("us"),
        "time-micros": pa.time64("us"),
        "uuid": pa.string(),
        "decimal": pa.string(),
    }
    if logical in by_logical_type:
        return by_logical_type[logical]
    if kind in ("record", "error"):
        return pa.struct(
            [(part["name"], arrow_of_avro(part["type"])) for part in schema["fields"]]
        )
    if kind == "array":
        return pa.list_(arrow_of_avro(schema["items"]))
    if kind == "map":
        return pa.map_(pa.string(), arrow_of_avro(schema["values"]))
    primitives: dict[str, pa.DataType] = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "fixed": pa.binary(),
        "null": pa.null(),
    }
    # Enums and recursive records, which are referenced by name, are text.
    return primitives.get(kind, pa.string())


def _value(value: Any, found: Any) -> Any:
    """Return a value in the form that Arrow accepts."""
    import pyarrow as pa

    kind = pa.types
    if value is None or kind.is_primitive(found) or kind.is_binary(found):
        return value
    if kind.is_struct(found):
        return {part.name: _value(value[part.name], part.type) for part in found}
    if kind.is_list(found):
        return [_value(item, found.value_type) for item in value]
    if kind.is_map(found):
        return [(key, _value(item, found.item_type)) for key, item in value.items()]
    if kind.is_string(found) and not isinstance(value, str):
        return json_text(value) if isinstance(value, dict | list | bool) else str(value)
    return value


def write_avro_without(content: Readable, removed: RemovedRows, target: Writable) -> None:
    """Write a file without some rows, with the same schema and codec but new blocks."""
    import fastavro

    with spooled(content) as copy:
        reader = open_avro(copy, return_record_name=True, return_named_type=True)
        kept = (record for number, record in enumerate(reader, 1) if number not in removed)
        fastavro.writer(
            cast(BinaryIO, target),
            json.loads(reader.metadata["avro.schema"]),
            kept,
            codec=reader.metadata.get("avro.codec", "null"),
            metadata={k: v for k, v in reader.metadata.items() if not k.startswith("avro.")},
            sync_marker=_SYNC_MARKER,
        )
