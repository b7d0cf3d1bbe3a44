"""The fixture `try_table`: computes a table from given rows."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.frames import arrow_to_spark, collect
from lakehouse.iceberg.write.trial import Trial
from lakehouse.ingestion.read_delivered import read_delivered
from lakehouse.orchestration.runs.dry_runs import try_function
from lakehouse.orchestration.table_function import (
    TableFunction,
    function_of,
    functions_by_table,
)
from lakehouse.tables import types
from lakehouse.tables.casts import to_timestamp
from lakehouse.tables.feed import INGEST_COLUMNS, Feed, uncompressed
from lakehouse.tables.quoting import identifier, meant_name, shown
from lakehouse.tables.rule import Level
from lakehouse.tables.table import Append, Column, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.project import Project


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
    for column, column_values, arrow_field in zip(
        columns, values, to_arrow_schema(schema), strict=True
    ):
        if types.is_nested(types.parse(column.type)):
            continue
        try:
            arrays.append(pa.array(column_values, arrow_field.type))
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


def _read(name: str, column: Column, row: Row) -> Any:
    value = row.get(column.name)
    kind = column.type.partition("(")[0]
    # Arrow does not convert integers to decimals.
    is_text = isinstance(value, str) or (kind == "decimal" and type(value) is int)
    try:
        read = _READ_AS[kind](value) if is_text and kind in _READ_AS else value
    except (ValueError, ArithmeticError) as error:
        raise _wrong_type(name, column, [value]) from error
    # Arrow would read a number as a date.
    if kind.startswith(("date", "timestamp")) and not isinstance(read, date | None):
        raise _wrong_type(name, column, [value])
    return read


def _wrong_type(name: str, column: Column, values: Sequence[Any]) -> UsageError:
    kinds = sorted({type(value).__name__ for value in values if value is not None})
    return UsageError(
        f"{name} has {', '.join(kinds)} in its column {column.name}, which cannot be read as"
        f" {column.type}; expected values of that type.",
        next_step="A bronze table contains strings, as delivered.",
    )


Rows = Sequence[Row]
_MOST_FILE_ROWS = 100_000
_OF_QUARANTINE = ("_row_key", "_reasons", "_quarantined_at")


@dataclass(frozen=True)
class RefusedRow:
    """A row that would be quarantined."""

    row: Mapping[str, Any]
    """The row as delivered."""
    reasons: tuple[str, ...]
    """The names of the rules that it breaks."""


@dataclass(frozen=True)
class TriedTable:
    """What a run would do with the test's rows."""

    rows: list[dict[str, Any]]
    """The accepted rows sorted by value, without the stamp of a merge; timestamps are in UTC."""
    refused: list[RefusedRow]
    """The rows that would be quarantined."""
    removed: list[dict[str, Any]]
    """The keys of the rows that a merge would delete."""
    failed: dict[str, str]
    """The result of each rule that would block: `1 of 2 rows`."""
    warned: dict[str, str]
    """The result of each rule that would warn."""
    not_evaluated: list[str]
    """The rules that need a written table, or rows that the test does not provide."""


@dataclass(frozen=True)
class TryTable:
    """Computes declared tables from rows of their inputs, without writing."""

    engine: Engine
    declared: Mapping[str, IcebergTable]
    load_project: "Callable[[], Project]"
    """Loads the project in which functions are looked up by table name."""
    computed: dict[str, IcebergTable] = field(default_factory=dict)
    """Tables that the test computed before, which others may read."""

    def __call__(
        self,
        asset: dg.AssetsDefinition | str,
        rows: Mapping[str, Rows] | Rows | Path,
        *,
        partitions: str | Sequence[str] = (),
        existing: Rows = (),
        other_tables: Mapping[str, Rows] | None = None,
    ) -> TriedTable:
        """Compute a table as a run would, and evaluate its rules.

        A row is a mapping from columns to values; omitted columns are NULL. Rows of a bronze
        table are treated as rows of one file in order, unless they have source columns.

        :param asset: the decorated function, or the name of its table.
        :param rows: rows by input, or only rows if there is one input; for an incremental
            input, the new rows; for a table filled by a feed, also the path of a file.
        :param partitions: the partitions of the run, such as `2026-01-31`; by default all rows
            are computed.
        :param existing: the rows already in the table.
        :param other_tables: rows of tables that rules refer to, by name.
        :raises UsageError: if an input, column or partition is unknown, or a value has another
            type.
        :raises FileRejected: if a file does not match the feed declaration.
        """
        function = self._function(asset)
        self.computed[function.table.name] = function.table
        if isinstance(rows, Path):
            rows = _file_rows(function, rows)
        given = self._frames(function, rows)
        table = function.table
        other_frames = self._other_frames(function, given, other_tables or {})
        there = None
        if existing:
            there = frame_of(self.engine.spark, table.name, table.columns, existing)
        trial = try_function(
            self.engine,
            function,
            given,
            there,
            keys=(partitions,) if isinstance(partitions, str) else tuple(partitions),
            read_other=other_frames.get,
        )
        return _collected(trial)

    def _function(self, asset: dg.AssetsDefinition | str) -> TableFunction:
        from lakehouse.orchestration.discovery import declared_assets

        if isinstance(asset, str):
            functions = functions_by_table(declared_assets(self.load_project().modules))
            if asset not in functions:
                raise UsageError(
                    f"No function computes {asset!r}; {meant_name(asset, functions)}"
                )
            return functions[asset]
        function = function_of(asset)
        if function is None:
            raise UsageError(
                "try_table was given another asset; expected a function that is decorated by"
                " iceberg_asset or feed_asset, or the name of its table."
            )
        return function

    def _frames(
        self, function: TableFunction, rows: Mapping[str, Rows] | Rows
    ) -> "dict[str, DataFrame]":
        names = list(inspect.signature(function.compute).parameters)
        if not isinstance(rows, Mapping):
            if len(names) != 1:
                raise UsageError(
                    f"{function.table.name} was given rows of one input; expected a mapping of"
                    f" {', '.join(names)} to rows of each."
                )
            rows = {names[0]: rows}
        unknown = [name for name in rows if name not in names]
        if unknown:
            raise UsageError(
                f"{function.table.name} has no input {unknown[0]!r};"
                f" {meant_name(unknown[0], names)}"
            )
        if function.feed:
            (name,) = names
            columns = _delivered_columns(function.feed)
            stamped = delivered(rows.get(name, ()))
            return {name: frame_of(self.engine.spark, name, columns, stamped)}
        return {name: self._input_frame(function, name, rows[name]) for name in rows}

    def _input_frame(self, function: TableFunction, name: str, rows: Rows) -> "DataFrame":
        declared = function.inputs[name]
        table = self._table(function, declared.table)
        columns: Sequence[Column] = table.columns
        if declared.mode == "changed_keys":
            columns = [table.column(key) for key in declared.keys]
        else:
            rows = with_delivery(table, rows)
        return frame_of(self.engine.spark, name, columns, rows)

    def _other_frames(
        self,
        function: TableFunction,
        given: "Mapping[str, DataFrame]",
        other_tables: Mapping[str, Rows],
    ) -> "dict[str, DataFrame]":
        other_frames = {
            declared.table: given[name]
            for name, declared in function.inputs.items()
            if declared.mode == "latest" and name in given
        }
        for name, rows in other_tables.items():
            table = self._table(function, name)
            other_frames[name] = frame_of(
                self.engine.spark, name, table.columns, with_delivery(table, rows)
            )
        return other_frames

    def _table(self, function: TableFunction, name: str) -> IcebergTable:
        known = {**self.declared, **self.computed}
        if name not in known:
            raise UsageError(
                f"{function.table.name} reads {name}, which nothing declares;"
                f" {meant_name(name, known)}",
                next_step="Declare it, or give it in a fixture `declared_tables` of the test.",
            )
        return known[name]


def _file_rows(function: TableFunction, path: Path) -> Rows:
    if function.feed is None:
        raise UsageError(
            f"{function.table.name} was given the file {shown(str(path))}, and no feed fills it;"
            " expected rows of its inputs.",
            next_step="Give the rows that come out of the table of the feed.",
        )
    feed = function.feed
    if "csv" not in map(uncompressed, feed.formats):
        # Allow a readable sample for binary formats.
        feed = replace(feed, formats=(*feed.formats, "jsonl"))
    delivered_rows = read_delivered(feed, path, _MOST_FILE_ROWS).rows
    rows: Rows = delivered_rows.to_pylist(maps_as_pydicts="strict")
    return rows


def _delivered_columns(feed: Feed) -> list[Column]:
    delivered = (Column(column.name, column.type) for column in feed.declared_columns)
    return [*delivered, *INGEST_COLUMNS]


def _collected(trial: Trial) -> TriedTable:
    refused = []
    for row in _plain_rows(trial.rejected):
        reasons = tuple(row["_reasons"])
        as_delivered = {
            name: value for name, value in row.items() if name not in _OF_QUARANTINE
        }
        refused.append(RefusedRow(as_delivered, reasons))
    return TriedTable(
        _plain_rows(trial.rows),
        refused,
        _plain_rows(trial.removed),
        _found(trial, "fails"),
        _found(trial, "warns"),
        [rule.name for rule in trial.not_evaluated],
    )


def _found(trial: Trial, level: Level) -> dict[str, str]:
    """Return the results of a level, without rules that only quarantined rows."""
    return {
        result.rule.name: result.summary
        for result in trial.results
        if result.level == level and (result.blocks or result.rule.on_failure != "quarantine")
    }


def _plain_rows(frame: "DataFrame | None") -> list[dict[str, Any]]:
    """Return rows as dictionaries sorted by their values; timestamps are in UTC."""
    if frame is None:
        return []
    rows = []
    for row in collect(frame):
        rows.append(row.asDict(recursive=True))
    return sorted(rows, key=lambda row: [*map(_sortable, row.values())])


def _sortable(value: Any) -> tuple[bool, Any]:
    return value is not None, str(value) if isinstance(value, dict | list) else value
