"""Partition fields and sort orders, as they are written in a declaration."""

from datetime import date

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply, ensure, plan_now
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.table import Append, Merge, Overwrite, OverwritePartitions, WriteMode
from lakehouse_tests.iceberg.evolving import NAME, columns, declared


@pytest.mark.parametrize(
    ("written", "meant", "sql"),
    [
        ("region", "region", "`region`"),
        ("identity(region)", "region", "`region`"),
        ("days(ts)", "days(ts)", "days(`ts`)"),
        ("DAY( ts )", "days(ts)", "days(`ts`)"),
        ("month(ts)", "months(ts)", "months(`ts`)"),
        ("years(ts)", "years(ts)", "years(`ts`)"),
        ("bucket(16, id)", "bucket(16, id)", "bucket(16, `id`)"),
        ("bucket(id,16)", "bucket(16, id)", "bucket(16, `id`)"),
        ("truncate(zip, 4)", "truncate(4, zip)", "truncate(4, `zip`)"),
    ],
)
def test_a_partition_field_is_read_in_either_order_of_arguments(
    written: str, meant: str, sql: str
) -> None:
    field = PartitionField.parse(written)
    assert (str(field), field.sql) == (meant, sql)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "weeks(ts)",
        "bucket(id)",
        "bucket(0, id)",
        "bucket(4, 8)",
        "bucket(a, b)",
        "days(ts, 2)",
        "a b",
        "days(",
    ],
)
def test_what_is_no_transform_is_named_with_those_that_exist(text: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        PartitionField.parse(text)
    assert (
        str(raised.value)
        == f"{text!r} is not a partition transform; expected a column, years(c), months(c),"
        " days(c), hours(c), bucket(n, c) or truncate(w, c)."
    )


@pytest.mark.parametrize(
    ("written", "sql"),
    [
        ("ts", "`ts` ASC NULLS FIRST"),
        ("ts desc", "`ts` DESC NULLS LAST"),
        ("ts DESC NULLS FIRST", "`ts` DESC NULLS FIRST"),
        ("ts nulls last", "`ts` ASC NULLS LAST"),
        ("bucket(id, 4) asc", "bucket(4, `id`) ASC NULLS FIRST"),
    ],
)
def test_a_sort_field_says_its_direction_and_where_nulls_go(written: str, sql: str) -> None:
    assert SortField.parse(written).sql == sql


ALL = columns(
    id="bigint",
    zip="string",
    amount="decimal(10,2)",
    ts="timestamp",
    d="date",
    n="timestamp_ntz",
    flag="boolean",
)


@pytest.mark.parametrize(
    "text",
    [
        "id",
        "zip",
        "amount",
        "ts",
        "d",
        "flag",
        "years(ts)",
        "months(d)",
        "days(n)",
        "hours(ts)",
        "bucket(4, id)",
        "bucket(zip, 4)",
        "bucket(4, amount)",
        "bucket(4, ts)",
        "truncate(zip, 2)",
        "truncate(10, id)",
        "truncate(10, amount)",
    ],
)
def test_a_table_is_created_and_evolved_to_each_kind_of_transform(
    embedded_engine: Engine, text: str
) -> None:
    created, evolved = (
        declared(columns=ALL, partitioning=[text]),
        declared(columns=ALL, name="silver.evolved"),
    )
    ensure(embedded_engine, created)
    assert plan_now(embedded_engine, created).is_empty
    ensure(embedded_engine, evolved)
    evolved = declared(columns=ALL, name="silver.evolved", partitioning=[text])
    apply(embedded_engine, evolved)
    assert plan_now(embedded_engine, evolved).is_empty


@pytest.mark.parametrize("mode", [None, "hash", "none"])
@pytest.mark.parametrize(
    "how", [Append(once_by=()), Overwrite(), OverwritePartitions(by="d"), Merge(on=["id"])]
)
def test_rows_of_many_days_in_any_order_land_without_a_file_open_for_each(
    embedded_engine: Engine, mode: str | None, how: WriteMode
) -> None:
    properties = {"write.distribution-mode": mode} if mode else {}
    table = declared(
        columns=columns(id="bigint", d="date"),
        partitioning=["d"],
        write=how,
        properties=properties,
    )
    # Each task has rows of each day, and none after another of the same day.
    rows = embedded_engine.spark.range(0, 80, 1, 2).selectExpr(
        "id", "date_add(DATE'2024-01-01', int(id % 20)) AS d"
    )
    every_day = Partitions(("2024",), ((date(2024, 1, 1), date(2025, 1, 1)),))
    for _ in range(2):
        write(
            embedded_engine,
            table,
            lambda: rows,
            run=Run("run", every_day if table.overwritten_by else None),
        )
    assert (
        embedded_engine.catalog.load(NAME).properties["write.spark.fanout.enabled"] == "false"
    )
    assert sum(file.record_count for file in files(embedded_engine, NAME)) == (
        160 if isinstance(how, Append) else 80
    )
