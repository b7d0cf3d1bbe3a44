"""Formats values of Spark rows as JSON and as text.

Lossless: timestamps are UTC, decimals keep their digits, integers beyond 2^53 are text in JSON.
"""

import json
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

Rows = Sequence[Mapping[str, Any]]
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


@dataclass(frozen=True)
class Cells:
    """The columns of a DataFrame, and rows of JSON values."""

    columns: Sequence[Column] = ()
    rows: Sequence[Sequence[Any]] = ()

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows by column names."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


def masked_cells(frame: "DataFrame", mask: Callable[[Rows], Rows]) -> Cells:
    """Collect a DataFrame; `mask` returns its rows with some values replaced by text."""
    from lakehouse.iceberg.frames.frames import collect

    fields = frame.schema.fields
    rows = [dict(zip(frame.columns, row, strict=True)) for row in collect(frame)]
    shown_rows: list[list[Any]] = []
    for row, shown in zip(rows, mask(rows), strict=True):
        values = []
        for field in fields:
            value = shown[field.name]
            is_value = value is row[field.name]
            values.append(json_value(value, field.dataType) if is_value else value)
        shown_rows.append(values)
    return Cells([column(field.name, field.dataType) for field in fields], shown_rows)


def plain_json(value: Any) -> Any:
    """Return the JSON value of a Python value; unsupported types become text."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST_JSON_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime) and value.tzinfo:
        return utc_text(value)
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
    """Format a timestamp as ISO 8601 in UTC: `2026-01-31T08:00:00Z`; Spark can parse it."""
    return timestamp.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def as_text(value: Any) -> str:
    """Return a JSON value as text; strings stay unchanged."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
