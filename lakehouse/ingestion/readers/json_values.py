"""Convert JSON values to declared column types, without rounding or guessing."""

import base64
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakehouse.ingestion.readers.json_records import Number, raw_json
from lakehouse.tables import types
from lakehouse.tables.feed import Feed

Convert = Callable[[Any], Any]


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
