"""The types of the columns of JSON, Parquet and Avro files."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse.ingestion.readers.arrow_types import declared_type
from lakehouse.ingestion.readers.avro_reader import arrow_of_avro, avro_fields, open_avro
from lakehouse.ingestion.readers.byte_source import unpacked
from lakehouse.ingestion.readers.json_reader import JsonRecords, Number
from lakehouse.ingestion.readers.parquet_reader import open_parquet

JSON_SCALARS = {"bigint": "json number", "double": "json number", "boolean": "json boolean"}
"""Values that bronze has as text, though the type is known from the file."""
_MAX_FIELDS = 200
"""An object with more keys is a map."""
_BIGINT_DIGITS = 18
_ROWS_PER_BATCH = 10_000
Types = dict[str, pa.DataType]


def file_types(path: Path, file_format: str, max_rows: int) -> Types:
    """Return the Arrow type of each column of a file.

    :raises FileRejected: it cannot be read.
    """
    with path.open("rb") as file:
        if file_format == "parquet":
            return {field.name: field.type for field in open_parquet(file).schema_arrow}
        if file_format == "avro":
            fields = avro_fields(open_avro(file))
            return {name: arrow_of_avro(part) for name, part in fields.items()}
        records = islice(JsonRecords(unpacked(file, file_format)), max_rows)
        return common_types(_json_types(record for record, _ in records))


def common_types(types: Iterable[Types]) -> Types:
    """Return types for the values of several files; text if there is no other."""
    by_name: dict[str, list[pa.DataType]] = {}
    for columns in types:
        for name, kind in columns.items():
            known = by_name.setdefault(name, [])
            known += [] if kind in known else [kind]
    return {name: _common_type(kinds) for name, kinds in by_name.items()}


def column_type(kind: pa.DataType, *, is_json: bool) -> str:
    """Return the type of a column: one of Iceberg, or one of `JSON_SCALARS`."""
    name = declared_type(_without_maps(kind) if is_json else kind)
    return JSON_SCALARS.get(name, name) if is_json else name


def bronze_type(file_type: str) -> str:
    """Return the type of a column in bronze."""
    return "string" if file_type in JSON_SCALARS.values() else file_type or "string"


def _common_type(kinds: Sequence[pa.DataType]) -> Any:
    schemas = [pa.schema([("value", kind)]) for kind in kinds]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.string()


def _json_types(records: Iterable[Any]) -> Iterator[Types]:
    records = iter(records)
    while batch := [_plain(record) for record in islice(records, _ROWS_PER_BATCH)]:
        names = dict.fromkeys(name for record in batch for name in record)
        yield {name: _inferred([record.get(name) for record in batch]) for name in names}


def _inferred(values: list[Any]) -> Any:
    try:
        return pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.string()


def _plain(value: Any) -> Any:
    """Return a JSON value with Python's numbers."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, Number):
        digits = value.removeprefix("-")
        is_int = digits.isdigit() and len(digits) <= _BIGINT_DIGITS
        return int(value) if is_int else float(value)
    return value


def _without_maps(kind: pa.DataType) -> pa.DataType:
    """Return a type in which objects with unusual keys are text."""
    if pa.types.is_list(kind):
        return pa.list_(_without_maps(kind.value_type))
    if not pa.types.is_struct(kind):
        return kind
    names = {field.name.lower() for field in kind}
    if not 0 < len(names) == kind.num_fields <= _MAX_FIELDS or "" in names:
        return pa.string()
    return pa.struct([(field.name, _without_maps(field.type)) for field in kind])
