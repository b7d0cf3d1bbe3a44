"""The columns of JSON, Parquet and Avro files with the types that the files have."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.ingestion.readers.arrow_types import declared_type, text_of
from lakehouse.ingestion.readers.avro_reader import (
    arrow_of_avro,
    avro_fields,
    open_avro,
)
from lakehouse.ingestion.readers.byte_source import unpacked
from lakehouse.ingestion.readers.json_records import JsonRecords, Number
from lakehouse.ingestion.readers.parquet_reader import open_parquet
from lakehouse.tables import types
from lakehouse.tables.feed import uncompressed

if TYPE_CHECKING:
    import pyarrow as pa

JSON_SCALARS = {"bigint": "json number", "double": "json number", "boolean": "json boolean"}
"""JSON values that bronze has as text: what they are is known from the file."""
_WIDER = {frozenset({"int", "bigint"}): "bigint", frozenset({"float", "double"}): "double"}
_NUMBERS = frozenset({"bigint", "double"})
_MOST_KEYS = 200
"""Keys of an object beyond which they are taken for values, as in a map."""
_LONGEST_BIGINT = 18
Kind = Any
"""A type as text; a mapping for an object, a list of one kind for an array, None for null."""


def file_kinds(path: Path, file_format: str, most_rows: int) -> Mapping[str, Kind]:
    """Return the kind of each column of a file.

    :raises FileRejected: it cannot be read.
    """
    return _kinds(path, file_format, most_rows, path.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _kinds(path: Path, file_format: str, most_rows: int, _: int) -> Mapping[str, Kind]:
    with path.open("rb") as file:
        if file_format == "parquet":
            schema = open_parquet(file).schema_arrow
            return {field.name: declared_type(field.type) for field in schema}
        if file_format == "avro":
            fields = avro_fields(open_avro(file))
            return {name: declared_type(arrow_of_avro(part)) for name, part in fields.items()}
        kinds: Kind = {}
        for record, _text in islice(JsonRecords(unpacked(file, file_format)), most_rows):
            kinds = merged(kinds, _kind(record))
        found: Mapping[str, Kind] = kinds
        return found


def merged(one: Kind, other: Kind) -> Kind:
    """Return the kind that holds values of two; text where none else does."""
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: merged(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [merged(one[0], other[0])]
    if isinstance(one, str) and isinstance(other, str):
        wider = "double" if {one, other} <= _NUMBERS else "string"
        return _WIDER.get(frozenset({one, other}), wider)
    return "string"


def column_type(kind: Kind, file_format: str) -> str:
    """Return the type of a column by its kind: one of Iceberg, or one of `JSON_SCALARS`."""
    found = _type(kind)
    is_json = uncompressed(file_format) in ("json", "jsonl")
    return JSON_SCALARS.get(found, found) if is_json else found


def bronze_type(file_type: str) -> str:
    """Return the type that bronze has for a type of a file."""
    return "string" if file_type in JSON_SCALARS.values() else file_type or "string"


def texts_of(column: "pa.Array[Any]") -> list[str | None]:
    """Return the values of a column as texts, to be looked at."""
    import pyarrow as pa

    if pa.types.is_binary(column.type):
        return [value if value is None else value.hex() for value in column.to_pylist()]
    texts: list[str | None] = text_of(column).to_pylist()
    return texts


def _kind(value: Any) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Number):
        digits = value.removeprefix("-")
        return "bigint" if digits.isdigit() and len(digits) <= _LONGEST_BIGINT else "double"
    if isinstance(value, dict):
        return {name: _kind(part) for name, part in value.items()}
    if isinstance(value, list):
        element: Kind = None
        for item in value:
            element = merged(element, _kind(item))
        return [element]
    return None if value is None else "string"


def _type(kind: Kind) -> str:
    if isinstance(kind, list):
        return f"array<{_type(kind[0])}>"
    if not isinstance(kind, dict):
        return kind or "string"
    is_struct = 0 < len(kind) <= _MOST_KEYS and len({name.lower() for name in kind}) == len(
        kind
    )
    if not is_struct or not all(kind):
        return "string"
    fields = (types.Field(name, types.parse(_type(part))) for name, part in kind.items())
    return str(types.Struct(tuple(fields)))
