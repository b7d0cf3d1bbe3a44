"""Change records of an Avro file, with its schema and metadata unchanged.

Values are read as stored: a date is a number, since Python has no dates before year 1.
"""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro

Record = dict[str, Any]
_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
"""From Avro's specification."""
_SCHEMA, _CODEC = "avro.schema", "avro.codec"


def read_records(content: bytes) -> list[Record]:
    """Return the records of an Avro file."""
    plain = json.dumps(_plain(_schema(content))).encode()
    return list(fastavro.reader(BytesIO(_with_schema(content, plain))))  # type: ignore[arg-type]


def change_records(content: bytes, change: Callable[[Record], object]) -> bytes:
    """Return an Avro file whose records were changed in place."""
    records = read_records(content)
    for record in records:
        change(record)
    header = _read_header(BytesIO(content))
    meta = {name: value.decode() for name, value in header["meta"].items()}
    schema, codec = meta.pop(_SCHEMA), meta.pop(_CODEC, "null")
    written = BytesIO()
    fastavro.writer(
        written,
        _plain(json.loads(schema)),
        records,
        codec=codec,
        metadata=meta,
        sync_marker=header["sync"],
    )
    return _with_schema(written.getvalue(), schema.encode())


def _schema(content: bytes) -> Any:
    return json.loads(_read_header(BytesIO(content))["meta"][_SCHEMA])


def _read_header(stream: BytesIO) -> Record:
    header: Any = fastavro.schemaless_reader(stream, _HEADER, None)
    return dict(header)


def _with_schema(content: bytes, schema: bytes) -> bytes:
    """Return an Avro file with another schema in its header, for the same record bytes."""
    stream = BytesIO(content)
    header = _read_header(stream)
    header["meta"][_SCHEMA] = schema
    written = BytesIO()
    fastavro.schemaless_writer(written, _HEADER, header)
    written.write(stream.read())
    return written.getvalue()


def _plain(schema: Any) -> Any:
    """Return a schema without logical types, which would change the Python values."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if isinstance(schema, dict):
        kept = {name: part for name, part in schema.items() if name != "logicalType"}
        return {name: _plain(part) for name, part in kept.items()}
    return schema
