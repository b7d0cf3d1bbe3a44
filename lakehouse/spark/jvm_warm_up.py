"""Small tables that warm up the Spark of `lakehouse dev`, written twice in each way."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import Input, changed_keys, latest, versions_of
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.rows import accepted, not_blank, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.write.write_attempt import Compute
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.settings import Settings
from lakehouse.spark.spark_session import collect_garbage, open_session
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    OverwritePartitions,
    Versions,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIRST, _NEXT = date(2026, 1, 1), date(2026, 1, 2)
_DELIVERED = IcebergTable(
    "bronze.warmed",
    "Rows as they come.",
    [
        Column("id", "string"),
        Column("name", "string"),
        Column("amount", "string"),
        Column("day", "date"),
        Column("_source_file", "string"),
        Column("_source_sha256", "string"),
        Column("_source_row", "bigint"),
        Column("_source_modified_at", "timestamp"),
        Column("_ingested_at", "timestamp"),
    ],
    partitioning=["days(day)"],
    write=Append(once_by=["_source_sha256"]),
)
_BY_KEY = IcebergTable(
    "silver.warmed_names",
    "Rows by a key.",
    [Column("id", "bigint"), Column("name", "string"), Column("written_at", "timestamp")],
    rows_of=_DELIVERED,
    write=Merge(on=["name"], stamp="written_at"),
    rules=[not_null("name"), not_blank("name"), unique("name")],
)
_BY_DAY = IcebergTable(
    "silver.warmed_days",
    "Rows by days, of which the newest version counts.",
    [
        Column("id", "bigint"),
        Column("name", "string", profiled=True),
        Column("amount", "decimal(10,2)"),
        Column("day", "date"),
    ],
    rows_of=_DELIVERED,
    partitioning=["days(day)"],
    write=OverwritePartitions(by="day"),
    versions=Versions(of="id", newest=("_ingested_at", "_source_row")),
    rules=[
        not_null("id"),
        not_null("amount"),
        accepted("name", ["a name", "another"]),
        unique("id"),
    ],
)
_SUMS = IcebergTable(
    "gold.warmed_sums",
    "Sums of days.",
    [Column("day", "date"), Column("rows", "bigint"), Column("amount", "decimal(20,2)")],
    partitioning=["days(day)"],
    write=OverwritePartitions(by="day"),
    rules=[unique("day"), reconciles(_BY_DAY, here="sum(rows)", by="day")],
)
_PROFILES = IcebergTable(
    "gold.warmed_profiles",
    "Sums of names.",
    [
        Column("name", "string"),
        Column("rows", "bigint"),
        Column("amounts", "map<string,decimal(20,2)>"),
        Column("updated_at", "timestamp"),
    ],
    write=Merge(on=["name"], stamp="updated_at"),
    row_level="merge-on-read",
    rules=[unique("name"), reconciles(_BY_DAY, here="sum(rows)")],
)
_INPUTS: Mapping[str, Mapping[str, Input]] = {
    _BY_KEY.name: {"delivered": versions_of(_DELIVERED)},
    _BY_DAY.name: {"delivered": versions_of(_DELIVERED, by="day")},
    _SUMS.name: {"rows": latest(_BY_DAY, by="day")},
    _PROFILES.name: {
        "names": changed_keys(_BY_DAY, of="name", by="day"),
        "rows": latest(_BY_DAY),
    },
}


def write_warm_up_tables(settings: Settings) -> None:
    """Write the tables in a home that holds nothing else."""
    catalog = Catalog.of(settings)
    session = open_session(settings, catalog)
    write_each_way(Engine(catalog, lambda: session, settings.lock_dir, masking_key=b"warm-up"))
    # It took memory that nobody needs until the first run.
    collect_garbage(session)


def write_each_way(engine: Engine) -> None:
    """Write tables by append, merge and partitions, and change them."""
    days = Partitions((_FIRST.isoformat(),), ((_FIRST, _NEXT),))
    of_days = Run(partitions=days, full_recompute=False)
    by_day: list[tuple[IcebergTable, Compute, Run]] = [
        (_BY_DAY, lambda delivered: delivered, of_days),
        (_SUMS, _sums, of_days),
        (_PROFILES, _profiles, Run()),
    ]
    by_key: list[tuple[IcebergTable, Compute, Run]] = [
        (_BY_KEY, lambda delivered: delivered, Run())
    ]
    for file, computed in enumerate([by_key, by_key, by_day, by_day]):
        write(engine, _DELIVERED, lambda number=file: _delivered(engine, number))
        for table, compute, run in computed:
            write(engine, table, compute, _INPUTS[table.name], run)


def _delivered(engine: Engine, file: int) -> "DataFrame":
    arrived = datetime(2026, 1, 2, file, tzinfo=UTC)
    values = [(f"{file}", "a name", "1.50"), ("2", "another", "2"), ("no number", "odd", "")]
    rows: list[tuple[Any, ...]] = [
        (*value, _FIRST, f"{file}.csv", f"{file}", row, arrived, arrived)
        for row, value in enumerate(values)
    ]
    columns = ", ".join(f"{column.name} {column.type}" for column in _DELIVERED.columns)
    return engine.spark.createDataFrame(rows, columns)


def _sums(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql.functions import expr

    amount = expr("CAST(sum(amount) AS decimal(20,2)) AS amount")
    return rows.groupBy("day").agg(expr("count(1) AS rows"), amount)


def _profiles(names: "DataFrame", rows: "DataFrame") -> "DataFrame":
    from pyspark.sql.functions import expr

    theirs = rows.join(names, "name", "left_semi").repartition("name")
    sums = theirs.groupBy("name", "day").agg(
        expr("count(1) AS rows"), expr("sum(amount) AS amount")
    )
    amounts = expr(
        "map_from_entries(collect_list(struct(CAST(day AS string), CAST(amount AS"
        " decimal(20,2))))) AS amounts"
    )
    known = sums.groupBy("name").agg(expr("sum(rows) AS rows"), amounts)
    return names.join(known, "name", "left").selectExpr("*", "rows IS NULL AS _deleted")
