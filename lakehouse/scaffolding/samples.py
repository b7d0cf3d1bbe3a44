"""Sample files of a feed, read by the reader of feeds.

A file that cannot be read here would be rejected by the feed for the same reason.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse.errors import FileRejected, LakehouseError, UsageError
from lakehouse.ingestion.readers.arrow_types import declared_type, text_of
from lakehouse.ingestion.readers.avro_reader import arrow_of_avro, avro_fields, open_avro
from lakehouse.ingestion.readers.byte_source import Readable, read_head
from lakehouse.ingestion.readers.compression import reject_damaged, unpacked
from lakehouse.ingestion.readers.csv_first_row import header_names
from lakehouse.ingestion.readers.file_formats import open_reader
from lakehouse.ingestion.readers.json_reader import JsonRecords, Number, raw_json
from lakehouse.ingestion.readers.parquet_reader import open_parquet
from lakehouse.scaffolding.sampled_column import EMAIL, PHONE
from lakehouse.tables.feed import (
    DELIMITERS,
    FORMATS,
    Feed,
    FeedColumn,
    is_own_name,
    nfc,
    uncompressed,
)
from lakehouse.tables.quoting import shown

MAX_ROWS = 1_000_000
"""Rows that are read in total."""
FILE_NUMBER = "\0file"
"""Name of the column of `Samples.texts` with the index of each row's file."""
# Headers can contain years.
_VALUE = re.compile(r"(?!(?:1[89]|20)[0-9]{2}$)\s*[+-]?[0-9][0-9.,:/ TZ+-]*")
"""A number or a date."""
_MAX_FIELDS = 200
"""A JSON object with more keys is a map."""
_Types = dict[str, pa.DataType]
"""Types by the names of columns; the null type if the file only has texts or numbers."""


@dataclass(frozen=True)
class SampleFile:
    """A file with its columns."""

    path: Path
    file_format: str
    names: tuple[str, ...]
    types: _Types
    delimiter: str = ","


@dataclass(frozen=True)
class Samples:
    """The rows of files of one feed; all values are texts."""

    files: tuple[SampleFile, ...]
    feed: Feed
    """A feed that reads the files."""
    types: Mapping[str, str]
    """The type of each column in the files; empty in CSV, and for numbers in JSON."""
    texts: pa.Table

    @property
    def is_csv(self) -> bool:
        return uncompressed(self.feed.formats[0]) == "csv"

    def is_in_all_files(self, column: str) -> bool:
        return all(column in file.types for file in self.files)


def read_samples(paths: Sequence[Path], *, max_rows: int = MAX_ROWS) -> Samples:
    """Read the rows of files.

    :raises UsageError: a file has no format of feeds.
    :raises LakehouseError: a file cannot be read as the feed would read it, or there is no row;
        the message contains no value of a file.
    """
    files = [_open(path, max_rows) for path in paths]
    types = _common_types(files)
    feed = _feed(files, types)
    tables: list[pa.Table] = []
    remaining = max_rows
    for number, file in enumerate(files):
        with _explained(file.path):
            for table in _tables(feed, file, remaining):
                remaining -= table.num_rows
                numbers = pa.array([number] * table.num_rows, pa.int32())
                tables.append(table.append_column(FILE_NUMBER, numbers))
    if not tables:
        raise LakehouseError(
            f"{_listed(files)}: there is no row; expected rows, from which types are guessed.",
            next_step="Give files with rows.",
        )
    texts = pa.concat_tables(tables, promote_options="default")
    names = [name for name in types if name in texts.column_names]
    return Samples(tuple(files), feed, types, texts.select([*names, FILE_NUMBER]))


def _open(path: Path, max_rows: int) -> SampleFile:
    """Read the columns of a file."""
    formats = [name for name in FORMATS if path.name.lower().endswith(f".{name}")]
    if not formats:
        raise UsageError(
            f"{shown(path.name)} is in no format that feeds read; expected a name that ends in"
            f" {' or '.join(f'.{name}' for name in FORMATS)}.",
            next_step="Convert or rename it. CSV needs UTF-8, and names in the first row.",
        )
    file_format = formats[0]
    with _explained(path), path.open("rb") as file:
        if file_format == "parquet":
            types = {field.name: field.type for field in open_parquet(file).schema_arrow}
        elif file_format == "avro":
            fields = avro_fields(open_avro(file))
            types = {name: arrow_of_avro(part) for name, part in fields.items()}
        elif uncompressed(file_format) == "csv":
            return _open_csv(path, file_format, unpacked(file, file_format))
        else:
            types = _json_types(unpacked(file, file_format), max_rows)
    return SampleFile(path, file_format, tuple(types), types)


def _open_csv(path: Path, file_format: str, content: Readable) -> SampleFile:
    head = reject_damaged(lambda: read_head(content))
    # No line of the file has this name.
    feeds = [Feed("x", ["names of columns"], "bronze.x", delimiter=sign) for sign in DELIMITERS]
    headers = {feed.delimiter: header_names(feed, head) for feed in feeds}
    # The delimiter that gives most names; the first one of several.
    delimiter = max(DELIMITERS, key=lambda sign: len(headers[sign]))
    names = tuple(map(nfc, headers[delimiter]))
    has_people = any(re.fullmatch(f"{EMAIL}|{PHONE}", name) for name in names)
    if has_people or 2 * sum(bool(_VALUE.fullmatch(name)) for name in names) > len(names):
        raise LakehouseError(
            f"The first row of {shown(path.name)} holds numbers, dates or addresses; expected the"
            " names of its columns.",
            next_step="Put the column names in the first row, separated by commas.",
        )
    return SampleFile(path, file_format, names, dict.fromkeys(names, pa.null()), delimiter)


def _json_types(content: Readable, max_rows: int) -> _Types:
    found: dict[str, set[type]] = {}
    nested: dict[str, list[Any]] = {}
    for record, _ in islice(JsonRecords(content), max_rows):
        for name, value in record.items():
            kinds = found.setdefault(name, set())
            if value is not None:
                kinds.add(type(value))
            if isinstance(value, dict | list):
                nested.setdefault(name, []).append(json.loads(raw_json(value)))
    return {name: _json_type(kinds, nested.get(name, [])) for name, kinds in found.items()}


def _json_type(kinds: set[type], nested: list[Any]) -> Any:
    if kinds <= {Number, bool}:
        return pa.null()
    if not kinds <= {dict, list}:
        return pa.string()
    try:
        return _without_maps(pa.array(nested).type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.string()


def _without_maps(kind: Any) -> Any:
    """Return a type in which objects with unusual keys are text."""
    if pa.types.is_list(kind):
        return pa.list_(_without_maps(kind.value_type))
    if not pa.types.is_struct(kind):
        return kind
    names = {field.name.lower() for field in kind}
    if not 0 < len(names) == kind.num_fields <= _MAX_FIELDS or "" in names:
        return pa.string()
    return pa.struct([(field.name, _without_maps(field.type)) for field in kind])


def _common_types(files: Sequence[SampleFile]) -> dict[str, str]:
    """Return the type of each column for the values of all files; text if there is no other."""
    found: dict[str, list[Any]] = {}
    for file in files:
        for name, kind in file.types.items():
            found.setdefault(name, []).append(pa.schema([("value", kind)]))
    return {name: _common_type(schemas) for name, schemas in found.items()}


def _common_type(schemas: list[Any]) -> str:
    try:
        kind = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return "string"
    return "" if pa.types.is_null(kind) else declared_type(kind)


def _feed(files: Sequence[SampleFile], types: Mapping[str, str]) -> Feed:
    """Return a feed of all files: it rejects a file with another delimiter or other types."""
    required = {*types}.intersection(*(file.types for file in files))
    if not required:
        raise LakehouseError(
            f"{_listed(files)}: no column is in all files; expected files of one feed, with rows.",
            next_step="Make a feed of each kind.",
        )
    columns = []
    for at, (name, kind) in enumerate(types.items()):
        own_name = f"own_name_{at}" if is_own_name(name) else name
        is_optional = name not in required
        columns.append(
            FeedColumn(own_name, header=name, type=kind or "string", optional=is_optional)
        )
    widest = max(files, key=lambda file: len(file.names))
    formats = sorted({file.file_format for file in files})
    return Feed("sample", columns, "bronze.sample", formats=formats, delimiter=widest.delimiter)


def _tables(feed: Feed, file: SampleFile, max_rows: int) -> Iterator[pa.Table]:
    """Yield the first rows as texts, with the names of columns in files."""
    names = {column.name: column.name_in_files for column in feed.declared_columns}
    with file.path.open("rb") as content:
        # Without threads, the message has the number of an invalid row.
        reader = open_reader(feed, file.file_format, content, use_threads=False)
        with closing(reader.batches()) as batches:  # type: ignore[type-var]
            while max_rows > 0 and (batch := next(batches, None)) is not None:
                rows = batch.slice(0, max_rows)
                max_rows -= rows.num_rows
                in_files = [names[name] for name in rows.schema.names]
                yield pa.table([_texts(column) for column in rows.columns], in_files)


def _texts(column: Any) -> Any:
    if pa.types.is_binary(column.type):
        return pa.array([v if v is None else v.hex() for v in column.to_pylist()], pa.string())
    return text_of(column)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Name the file that cannot be read."""
    try:
        yield
    except FileRejected as error:
        raise LakehouseError(
            f"{shown(path.name)} cannot be read as a feed would read it: {error.args[0]}",
            next_step=error.next_step.replace(" and put it back", ""),
        ) from None


def _listed(files: Sequence[SampleFile]) -> str:
    return ", ".join(shown(file.path.name) for file in files)
