"""Convert a test's rows to a Spark DataFrame with the declared types."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.arrow_frames import arrow_to_spark
from lakehouse.tables import types
from lakehouse.tables.casts import to_timestamp
from lakehouse.tables.feed import INGEST_COLUMNS
from lakehouse.tables.quoting import identifier
from lakehouse.tables.suggestions import meant_name
from lakehouse.tables.table import Append, Column, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]
DELIVERED_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The default delivery time of a test's rows."""


def frame_of(
    spark: "SparkSession", name: str, columns: Sequence[Column], rows: Sequence[Row]
) -> "DataFrame":
    """Return rows as a DataFrame; omitted columns are NULL.

    Text in a column of another type is parsed, such as `"2026-01-31"` as a date.

    :param name: the name of the rows in errors.
    :raises UsageError: if a row has an unknown column or a value of another type.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    known = [column.name for column in columns]
    for row in rows:
        _check_names(name, row, known)
    ddl = ", ".join(f"{identifier(column.name)} {column.type}" for column in columns)
    # `StructType.fromDDL` is new in Spark 4.
    schema = spark.createDataFrame([], ddl).schema
    values = [[_read(name, column, row) for row in rows] for column in columns]
    arrays = []
    for column, column_values, field in zip(
        columns, values, to_arrow_schema(schema), strict=True
    ):
        if types.is_nested(types.parse(column.type)):
            continue
        try:
            arrays.append(pa.array(column_values, field.type))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise _wrong_type(name, column, column_values) from error
    if len(arrays) < len(columns):
        return spark.createDataFrame([*zip(*values, strict=True)], schema)
    # A list would pass through a Python process each time the DataFrame is read.
    return arrow_to_spark(spark, pa.Table.from_arrays(arrays, names=known), schema)


def with_delivery(table: IcebergTable, rows: Sequence[Row]) -> list[Row]:
    """Add source columns to the rows of a bronze table, as rows of one file in order, unless
    they have them. Rows of other tables are unchanged.
    """
    names = {column.name for column in INGEST_COLUMNS}
    if not isinstance(table.write, Append) or not names <= set(table.column_names):
        return list(rows)
    return delivered(rows)


def delivered(rows: Sequence[Row]) -> list[Row]:
    """Add missing source columns to rows, as rows of one delivered file in order."""
    stamped: list[Row] = []
    for number, row in enumerate(rows, 1):
        file = row.get("_source_file", "rows.csv")
        origin = {
            "_source_file": file,
            "_source_sha256": f"content of {file}",
            "_source_modified_at": DELIVERED_AT,
            "_source_row": number,
            "_ingested_at": DELIVERED_AT,
        }
        stamped.append({**origin, **row})
    return stamped


def _check_names(name: str, row: Row, known: Sequence[str]) -> None:
    for column in row:
        if column not in known:
            raise UsageError(f"{name} has no column {column!r}; {meant_name(column, known)}")


_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_READ_AS: Mapping[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "timestamp": to_timestamp,
    "timestamp_ntz": datetime.fromisoformat,
    "decimal": Decimal,
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(("float", "double"), float),
}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "binary": (bytes,),
    "boolean": (bool,),
    "date": (date,),
    "timestamp": (datetime,),
    "timestamp_ntz": (datetime,),
    "decimal": (Decimal,),
    **dict.fromkeys(_INTEGERS, (int,)),
    **dict.fromkeys(("float", "double"), (float, int)),
}
"""The accepted Python types by column type: Arrow would accept numbers as dates."""


def _read(name: str, column: Column, row: Row) -> Any:
    value = row.get(column.name)
    kind = column.type.partition("(")[0]
    # Arrow does not convert integers to decimals.
    is_text = isinstance(value, str) or (kind == "decimal" and type(value) is int)
    try:
        read = _READ_AS[kind](value) if is_text and kind in _READ_AS else value
    except (ValueError, ArithmeticError) as error:
        raise _wrong_type(name, column, [value]) from error
    if read is not None and kind in _KINDS and not isinstance(read, _KINDS[kind]):
        raise _wrong_type(name, column, [value])
    return read


def _wrong_type(name: str, column: Column, values: Sequence[Any]) -> UsageError:
    kinds = sorted({type(value).__name__ for value in values if value is not None})
    return UsageError(
        f"{name} has {', '.join(kinds)} in its column {column.name}, which cannot be read as"
        f" {column.type}; expected values of that type.",
        next_step="A bronze table contains strings, as delivered.",
    )
