"""Read the rows of a JSON file. A column without a declared type is text: the next table casts
it, and an invalid value rejects its row instead of the file.

A file contains JSON Lines, or one array of objects. Numbers keep their digits. The file is
parsed in blocks, so memory use is limited to one block and one object.
"""

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.arrow_types import (
    UNFIT,
    column_types,
    converted_in_calendar,
    require_declared,
)
from lakehouse.ingestion.readers.byte_source import Readable, Writable
from lakehouse.ingestion.readers.compression import reject_damaged
from lakehouse.ingestion.readers.csv_header import plan_header
from lakehouse.ingestion.readers.row_bytes import RemovedRows, RowBytes, rest_of
from lakehouse.tables import types
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import quoted

if TYPE_CHECKING:
    import pyarrow as pa


LONGEST_OBJECT = 16 << 20
"""The maximum length of an object, in characters."""
_BLOCK_BYTES = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


class Number(str):
    """A number as it is written in the file."""

    __slots__ = ()


class _RepeatedKey(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _RepeatedKey
    return values


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=Number, parse_int=Number, parse_constant=Number
)


class JsonRecords:
    """The objects of a file in order, each with its text; iteration rejects invalid JSON."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._is_over = False
        self._rows = 0
        self.is_array = False
        """Whether the objects are in one array; known after the first one."""

    def __iter__(self) -> Iterator[tuple[dict[str, Any], str]]:
        first = self._next_character()
        if not first:
            raise _rejected("an empty file", "no object", "JSON objects, or []")
        self.is_array = first == "["
        self._at += self.is_array
        while self._has_next():
            yield self._record()

    def _has_next(self) -> bool:
        character = self._next_character()
        if not self.is_array:
            return bool(character)
        if character == "]":
            self._at += 1
            if self._next_character():
                raise self._invalid("text after the array")
            return False
        if self._rows:
            if character != ",":
                raise self._invalid("no comma between two objects of the array")
            self._at += 1
            self._next_character()
        return True

    def _record(self) -> tuple[dict[str, Any], str]:
        self._rows += 1
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                break
            except _RepeatedKey:
                raise self._invalid("an object that has a key twice") from None
            except RecursionError:
                raise self._invalid("values nested too deeply") from None
            except json.JSONDecodeError:
                # The block may end within the object.
                if len(self._text) - self._at > LONGEST_OBJECT or not self._read():
                    is_cut = self._is_over and self._text.startswith("{", self._at)
                    what = "text that is no JSON, or is cut off" if is_cut else "no JSON"
                    raise self._invalid(what) from None
        if not isinstance(value, dict):
            raise self._invalid("a value that is no object")
        text, self._at = self._text[self._at : end], end
        return value, text

    def _next_character(self) -> str:
        """Return the next character that is not white space, or an empty string at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def _read(self) -> bool:
        """Read another block; return False at the end of the file."""
        if self._is_over:
            return False
        block = reject_damaged(lambda: self._content.read(_BLOCK_BYTES))
        self._is_over = not block
        try:
            new = self._decoder.decode(block, final=self._is_over)
        except UnicodeDecodeError:
            # Raised outside of the handler: the original error contains the bytes.
            new = None
        if new is None:
            raise _rejected(
                "not UTF-8", f"other bytes after row {self._rows}", "UTF-8 text"
            ) from None
        self._text, self._at = self._text[self._at :] + new, 0
        return True

    def _invalid(self, found: str) -> FileRejected:
        expected = "objects such as {...}, one in each line or in one array"
        return _rejected("not valid JSON", f"{found} at row {self._rows}", expected)


def raw_json(value: Any) -> str:
    """Return a value of a record as JSON, with numbers as written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        parts = (f"{json.dumps(k, ensure_ascii=False)}:{raw_json(v)}" for k, v in value.items())
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(raw_json, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _rejected(reason: str, found: str, expected: str) -> FileRejected:
    step = "Correct the file and put it back."
    return FileRejected(reason, found=found, expected=expected, next_step=step)


Convert = Callable[[Any], Any]
_BATCH_ROWS = 4096
_BATCH_CHARACTERS = 4 << 20
_EXACT = Context(types.WIDEST, traps=[Inexact, InvalidOperation])
Record = dict[str, Any]


class UndeclaredKey(ValueError):
    """A nested object has a key that the column's type does not name."""


def converter(feed: Feed, column_type: types.ColumnType) -> Convert:
    """Return the function that converts a JSON value to a column type.

    It raises ValueError, TypeError or ArithmeticError for a value that does not fit.
    """
    convert = _converter(feed, column_type)
    if convert is text_of_value:
        return convert
    return lambda value: None if value is None else convert(value)


def text_of_value(value: Any) -> str | None:
    """Return a value as text: strings and numbers as written, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    return raw_json(value)


def _converter(feed: Feed, column_type: types.ColumnType) -> Convert:
    if isinstance(column_type, types.Struct):
        parts = {part.name: converter(feed, part.type) for part in column_type.fields}
        ignores = feed.on_new_column == "ignore"
        return lambda value: _struct(value, parts, ignores=ignores)
    if isinstance(column_type, types.Array):
        element = converter(feed, column_type.element)
        return lambda value: [element(item) for item in _require(value, list)]
    if isinstance(column_type, types.Map):
        key, item = (converter(feed, t) for t in (column_type.key, column_type.value))
        return lambda value: [(key(k), item(v)) for k, v in _require(value, dict).items()]
    if isinstance(column_type, types.Decimal):
        unit = Decimal(1).scaleb(-column_type.scale)
        # Arrow crashes for a decimal with many more digits than its type.
        return lambda value: Decimal(_require(value, str)).quantize(unit, context=_EXACT)
    primitives: dict[str, Convert] = {
        "string": text_of_value,
        "boolean": lambda value: _require(value, bool),
        "int": _integer,
        "bigint": _integer,
        "float": lambda value: float(_require(value, Number)),
        "double": lambda value: float(_require(value, Number)),
        "date": lambda value: date.fromisoformat(_text(value)),
        "timestamp": lambda value: _timestamp(feed, value),
        "timestamp_ntz": _wall_time,
        "binary": lambda value: base64.b64decode(_text(value), validate=True),
    }
    return primitives[column_type.name]


def _struct(value: Any, parts: Mapping[str, Convert], *, ignores: bool) -> dict[str, Any]:
    _require(value, dict)
    if not ignores and (unknown := value.keys() - parts.keys()):
        raise UndeclaredKey(min(unknown))
    return {name: convert(value.get(name)) for name, convert in parts.items()}


def _require(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _integer(value: Any) -> int:
    number = Decimal(_require(value, Number))
    # Some tools write integers as `17.0`. With a large exponent, `int` would fill the memory.
    if number.adjusted() > types.WIDEST or number != number.to_integral_value():
        raise ValueError
    return int(number)


def _timestamp(feed: Feed, value: Any) -> datetime:
    timestamp = datetime.fromisoformat(_text(value))
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=feed.zone)


def _wall_time(value: Any) -> datetime:
    timestamp = datetime.fromisoformat(_text(value))
    if timestamp.tzinfo:
        raise ValueError
    return timestamp


class JsonReader:
    """Reads a file's columns and rows.

    A missing key is NULL. A required column must be in at least one object. Columns added by
    `on_new_column="add"` must be in the first 4,096 rows or 4 MB.
    """

    def __init__(self, feed: Feed, content: Readable, *, use_threads: bool) -> None:  # noqa: ARG002
        self._feed = feed
        self._records = iter(JsonRecords(content))
        self._keys = {column.name: column.name_in_files for column in feed.declared_columns}
        self._seen: set[str] = set()
        self._first = self._next_records()
        keys = dict.fromkeys(key for record in self._first for key in record)
        if self._first:
            require_declared(feed, feed.named([*keys]))
        self.header = plan_header(feed, [*feed.column_names, *self._unknown(keys)])
        self._keys |= {name: name for name in self.header.added}
        self._types = column_types(feed, self.header.added)

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows in order."""
        import pyarrow as pa

        converters = self._converters()
        records, rows = self._first, 0
        while records:
            self._check_keys(records)
            columns = [
                self._column(name, convert, records, rows + 1)
                for name, convert in converters.items()
            ]
            yield pa.RecordBatch.from_arrays(columns, names=[*converters])
            rows += len(records)
            records = self._next_records()
        if rows and not {self._keys[name] for name in self._feed.required_names} <= self._seen:
            plan_header(self._feed, self._feed.named(sorted(self._seen)))

    def _next_records(self) -> list[Record]:
        records: list[Record] = []
        characters = 0
        while len(records) < _BATCH_ROWS and characters < _BATCH_CHARACTERS:
            record, text = next(self._records, ({}, None))
            if text is None:
                break
            records.append(record)
            characters += len(text)
        return records

    def _converters(self) -> dict[str, Convert]:
        text = types.Primitive("string")
        declared = {column.name: column.type for column in self._feed.declared_columns}
        return {
            name: converter(
                self._feed, types.parse(declared[name]) if name in declared else text
            )
            for name in self.header.columns
        }

    def _unknown(self, keys: "dict[str, None] | set[str]") -> list[str]:
        known = set(self._keys.values())
        return [key for key in keys if key not in known]

    def _check_keys(self, records: Sequence[Record]) -> None:
        new = set[str]().union(*records) - self._seen
        self._seen |= new
        unknown = sorted(self._unknown(new))
        if unknown and self._feed.on_new_column != "ignore":
            plan_header(self._feed, [*self._feed.column_names, *unknown])
            raise FileRejected(
                "a new column that appears late",
                found=f"{len(unknown)} new columns after row {_BATCH_ROWS:,} or 4 MB",
                expected="each new column in one of the first objects",
                next_step="Declare the column as optional, and put the file back.",
            )

    def _column(
        self, name: str, convert: Convert, records: Sequence[Record], first_row: int
    ) -> "pa.Array[Any]":
        import pyarrow as pa

        key, arrow = self._keys[name], self._types[name]

        def converted(some: Sequence[Record]) -> "pa.Array[Any]":
            values = pa.array([convert(record.get(key)) for record in some], arrow)
            return converted_in_calendar(self._feed, values, arrow)

        try:
            return converted(records)
        except UNFIT:
            pass
        # Raised outside of the handler: the original error contains the value.
        for row, record in enumerate(records, first_row):
            try:
                converted([record])
            except UndeclaredKey as error:
                part = "" if self._feed.has_personal_columns else f" {quoted(str(error))}"
                raise self._unfit(name, f"the undeclared key{part}", row) from None
            except UNFIT:
                break
        raise self._unfit(name, "a value that does not fit", row)

    def _unfit(self, name: str, found: str, row: int) -> FileRejected:
        declared = {column.name: column.type for column in self._feed.declared_columns}
        return FileRejected(
            "a value that does not fit",
            found=f"{found} in column {quoted(name)} in row {row}",
            expected=f"values of type {declared.get(name, 'string')}",
            next_step=f"Correct the file, or declare {name} as string for its JSON text.",
        )


def write_json_without(content: Readable, removed: RemovedRows, target: Writable) -> None:
    """Write a file without some rows; the text of other objects does not change."""
    records = JsonRecords(content)
    number, is_first = 0, True
    for number, (_, text) in enumerate(records, 1):
        if number not in removed:
            before = ("[" if is_first else ",\n") if records.is_array else ""
            target.write(f"{before}{text}{'' if records.is_array else chr(10)}".encode())
            is_first = False
    if records.is_array:
        target.write(b"[]\n" if is_first else b"]\n")


def json_row_bytes(_: str = ",") -> RowBytes:
    """Return how an unreadable file is searched: as text without rows."""
    return RowBytes(rest_of, lambda _: [])
