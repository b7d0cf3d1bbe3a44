"""Tables that the tests of the engine write, and small ways to fill and look at them."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import Any

from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.rules.rows import between, castable, excluded, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
)
from lakehouse_tests.frames import frame_of

SOURCE = [
    Column("_source_file", "string"),
    Column("_source_sha256", "string"),
    Column("_source_row", "bigint"),
]
"""The columns that identify a delivered row."""
EVENTS = IcebergTable(
    name="bronze.events",
    comment="Each run adds its rows.",
    columns=[Column("id", "bigint"), Column("v", "int")],
    write=Append(once_by=()),
)
DELIVERED = IcebergTable(
    name="bronze.delivered",
    comment="Rows as they were delivered, each with its source.",
    columns=[Column("id", "string"), Column("name", "string"), *SOURCE],
    write=Append(),
)
PEOPLE = IcebergTable(
    name="silver.people",
    comment="One row per name.",
    columns=[
        Column("id", "bigint"),
        Column("name", "string"),
        Column("marks", "map<string,int>"),
        Column("changed_at", "timestamp"),
    ],
    write=Merge(on=["name"], stamp="changed_at"),
    rules=[
        castable("id", "bigint"),
        not_null("name"),
        unique("name"),
        excluded("name", ["nobody"], on_failure="block"),
    ],
)
DAYS = IcebergTable(
    name="silver.days",
    comment="Numbers by day.",
    columns=[Column("d", "date"), Column("v", "int"), Column("id", "bigint")],
    partitioning=["days(d)"],
    write=OverwritePartitions(by="d"),
    rules=[between("v", 0, 100), unique("id")],
)
TOTALS = IcebergTable(
    name="gold.totals",
    comment="Replaced as a whole.",
    columns=[Column("v", "int")],
    write=Overwrite(),
)

MONDAY, TUESDAY, WEDNESDAY = date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)


def rows_of(
    engine: Engine, schema: str, rows: Iterable[Sequence[Any]]
) -> Callable[..., DataFrame]:
    """Return a compute function that gives these rows."""
    given = list(rows)
    return lambda **_: frame_of(engine.spark, schema, given)


def delivery(
    engine: Engine, file: str, rows: Sequence[tuple[str | None, str | None]]
) -> Callable[..., DataFrame]:
    """Return a compute function that gives the rows of one delivered file."""
    stamped = [(id_, name, file, f"sha-{file}", at) for at, (id_, name) in enumerate(rows, 1)]
    return rows_of(engine, schema_of(DELIVERED.columns), stamped)


def people(delivered: DataFrame) -> DataFrame:
    """Compute `silver.people` from what was delivered."""
    return delivered.selectExpr(
        "id", "name", "map('a', 1) AS marks", "_source_file", "_source_sha256", "_source_row"
    )


def days(engine: Engine, *rows: tuple[date, int, int]) -> Callable[..., DataFrame]:
    """Return a compute function that gives rows of `silver.days`."""
    return rows_of(engine, "d date, v int, id bigint", rows)


def run_of(*partition_days: date) -> Run:
    """Return a run of some days."""
    return Run(
        "run",
        Partitions(
            tuple(map(str, partition_days)),
            tuple((d, d + timedelta(1)) for d in partition_days),
        ),
    )


def content(engine: Engine, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return a table's rows as readers see them, sorted."""
    frame = engine.spark.table(engine.catalog.sql_name(table))
    found = frame.selectExpr(*columns).collect() if columns else frame.collect()
    return sorted((tuple(row) for row in found), key=repr)


def snapshot_id(engine: Engine, table: str) -> int | None:
    """Return the snapshot that readers see."""
    main = read_history(engine, table).main
    return main.snapshot_id if main else None


def refs(engine: Engine, table: str) -> set[str]:
    """Return the names of a table's branches and tags."""
    return set(read_history(engine, table).refs)


def data_files(engine: Engine, table: str) -> set[str]:
    """Return the paths of the files that the current snapshot holds."""
    return {file.path for file in files(engine, table)}


def put(
    engine: Engine,
    table: IcebergTable,
    rows: Iterable[Sequence[Any]],
    schema: str | None = None,
    run: Run | None = None,
) -> Outcome:
    """Write rows to a table; in its columns, unless there is a schema."""
    return write(
        engine, table, rows_of(engine, schema or schema_of(table.columns), rows), run=run
    )


def schema_of(columns: Iterable[Column]) -> str:
    """Return the schema of some columns, as Spark reads it."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)
