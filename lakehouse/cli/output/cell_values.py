"""Formats values of Spark rows as JSON and as text.

Lossless: timestamps are UTC, decimals keep their digits, integers beyond 2^53 are text in JSON.
"""

import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

LARGEST_JSON_INTEGER = 2**53
_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})


@dataclass(frozen=True)
class Column:
    """A result column and whether it is right-aligned."""

    name: str
    is_number: bool = False


def columns_named(names: Iterable[str], numbers: Container[str] = ()) -> list[Column]:
    """Return columns by name; `numbers` are right-aligned."""
    return [Column(name, name in numbers) for name in names]


def column(name: str, kind: "DataType") -> Column:
    """Return the column of a Spark DataFrame field."""
    return Column(name, kind.typeName() in _NUMBERS)


def json_value(value: Any, kind: "DataType") -> Any:
    """Return the JSON value of a Spark value."""
    from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

    if value is None:
        return None
    if isinstance(kind, TimestampType):
        return utc_text(value)
    if isinstance(kind, ArrayType):
        return [json_value(item, kind.elementType) for item in value]
    if isinstance(kind, MapType):
        members = {}
        for key, item in value.items():
            members[as_text(json_value(key, kind.keyType))] = json_value(item, kind.valueType)
        return members
    if isinstance(kind, StructType):
        return dict(zip(kind.fieldNames(), json_row(value, kind), strict=True))
    return plain_json(value)


def json_row(row: Sequence[Any], kind: "StructType") -> list[Any]:
    """Return the JSON values of a Spark row in order."""
    fields = zip(row, kind.fields, strict=True)
    return [json_value(value, field.dataType) for value, field in fields]


def shown_row(
    row: Mapping[str, Any], shown: Mapping[str, Any], kind: "StructType"
) -> list[Any]:
    """Return the JSON values of a row; replaced values are text."""
    values = []
    for field in kind.fields:
        value = shown[field.name]
        is_value = value is row[field.name]
        values.append(json_value(value, field.dataType) if is_value else value)
    return values


def plain_json(value: Any) -> Any:
    """Return the JSON value of a Python value; unsupported types become text."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST_JSON_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return utc_text(value) if value.tzinfo else iso_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def utc_seconds(timestamp: datetime) -> str:
    """Format a timestamp in UTC: `2026-01-31 08:00:00Z`."""
    return f"{timestamp.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def utc_text(timestamp: datetime) -> str:
    """Format a timestamp as ISO 8601 in UTC: `2026-01-31T08:00:00.123Z`; Spark can parse it."""
    return iso_text(timestamp.astimezone(UTC).replace(tzinfo=None)) + "Z"


def iso_text(timestamp: datetime) -> str:
    """Format a timestamp with its decimals, at least three if it has any."""
    thousandths, rest = divmod(timestamp.microsecond, 1000)
    return timestamp.isoformat(
        timespec="microseconds" if rest else "milliseconds" if thousandths else "seconds"
    )


def as_text(value: Any) -> str:
    """Return a JSON value as text; strings stay unchanged."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
