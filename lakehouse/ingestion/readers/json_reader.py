"""Read the rows of a JSON file. A column without a declared type is text: the next table casts
it, and an invalid value rejects its row instead of the file.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.arrow_types import column_types, require_declared
from lakehouse.ingestion.readers.byte_source import Readable, Writable
from lakehouse.ingestion.readers.csv_header import plan_header
from lakehouse.ingestion.readers.json_records import JsonRecords, Number, raw_json
from lakehouse.ingestion.readers.row_bytes import LeftOut, Row, RowBytes
from lakehouse.tables import types
from lakehouse.tables.escaping import quoted
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

Convert = Callable[[Any], Any]
_BATCH_ROWS = 4096
_BATCH_CHARACTERS = 4 << 20
_READ_BYTES = 1 << 20
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
        return lambda value: Decimal(_require(value, str))
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
    # Some tools write integers as `17.0`.
    if number != number.to_integral_value():
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
        try:
            return pa.array([convert(record.get(key)) for record in records], arrow)
        except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
            pass
        # Raised outside of the handler: the original error contains the value.
        for row, record in enumerate(records, first_row):
            try:
                pa.array([convert(record.get(key))], arrow)
            except UndeclaredKey as error:
                part = "" if self._feed.has_personal_columns else f" {quoted(str(error))}"
                raise self._unfit(name, f"the undeclared key{part}", row) from None
            except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
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


def write_json_without(content: Readable, left_out: LeftOut, target: Writable) -> None:
    """Write a file without some rows; the text of other objects does not change."""
    records = JsonRecords(content)
    number, is_first = 0, True
    for number, (_, text) in enumerate(records, 1):
        if number not in left_out:
            before = ("[" if is_first else ",\n") if records.is_array else ""
            target.write(f"{before}{text}{'' if records.is_array else chr(10)}".encode())
            is_first = False
    if records.is_array:
        target.write(b"[]\n" if is_first else b"]\n")


def json_row_bytes(_: str = ",") -> RowBytes:
    """Return how an unreadable file is searched: as text without rows."""
    return RowBytes(_rest, lambda _: [])


def _rest(content: "Readable | BinaryIO") -> Iterator[Row]:
    while block := content.read(_READ_BYTES):
        yield Row(None, block, is_rest=True)
