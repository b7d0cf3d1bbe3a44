"""The fixture `try_table`: typed rows, defaults and errors."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from lakehouse.assets.bronze.raw_fruits import raw_fruits
from lakehouse.assets.silver.fruits import fruits
from lakehouse.errors import UsageError
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Merge, Overwrite, OverwritePartitions
from lakehouse.testing.table_fixture import TryTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

ORDERS = IcebergTable(
    name="silver.orders",
    comment="Orders.",
    columns=[
        Column("order_id", "bigint"),
        Column("day", "date"),
        Column("amount", "decimal(10,2)"),
        Column("paid_at", "timestamp"),
        Column("lines", "map<string,int>"),
    ],
    write=Merge(on=["order_id"]),
)
BY_DAY = IcebergTable(
    name="gold.orders",
    comment="Orders, as they are.",
    columns=ORDERS.columns[:4],
    write=OverwritePartitions(by="day"),
    partitioning=["days(day)"],
    rules=[not_null("amount", on_failure="block")],
)
COPY = IcebergTable(
    name="gold.copies",
    comment="Orders, as they are.",
    columns=ORDERS.columns,
    write=Overwrite(),
    rules=[unique("order_id", on_failure="warn"), references("order_id", "silver.known")],
)
KNOWN = IcebergTable(
    name="silver.known",
    comment="Known orders.",
    columns=[Column("order_id", "bigint")],
    write=Overwrite(),
)


@iceberg_asset(
    BY_DAY,
    inputs={"orders": latest(ORDERS.name, by="day")},
    partitions_def=dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-02-01"),
)
def orders_by_day(orders: "DataFrame") -> "DataFrame":
    """Orders, those without an id a day later."""
    late = "if(order_id IS NULL, date_add(day, 1), day) AS day"
    return orders.selectExpr("order_id", late, "amount", "paid_at")


@iceberg_asset(COPY, inputs={"orders": latest(ORDERS.name)})
def copies(orders: "DataFrame") -> "DataFrame":
    """Orders, as they are."""
    return orders


@pytest.fixture(scope="session")
def declared_tables() -> Mapping[str, IcebergTable]:
    return {table.name: table for table in (ORDERS, KNOWN)}


def test_texts_are_read_as_their_types_and_what_is_left_out_is_null(try_table):
    tried = try_table(
        copies,
        [
            {"order_id": "7", "day": "2026-01-31", "amount": 12, "lines": {"a": 1}},
            {"order_id": 8, "paid_at": "2026-01-31T08:00:00+08:00"},
        ],
    )

    assert tried.rows == [
        {
            "order_id": 7,
            "day": date(2026, 1, 31),
            "amount": Decimal("12.00"),
            "paid_at": None,
            "lines": {"a": 1},
        },
        {
            "order_id": 8,
            "day": None,
            "amount": None,
            "paid_at": datetime(2026, 1, 31, tzinfo=UTC),
            "lines": None,
        },
    ]


def test_a_file_is_read_by_its_feed_and_the_next_table_knows_the_first(try_table, tmp_path):
    file = tmp_path / "fruit.csv"
    file.write_text("id,fruit,berry\n1,Apple,false\n2,,true\n", encoding="utf-8")
    delivered = try_table(raw_fruits, file)
    tried = try_table(fruits, delivered.rows)

    assert [row["_source_file"] for row in delivered.rows] == ["fruit.csv", "fruit.csv"]
    assert [row["fruit"] for row in tried.rows] == ["Apple"]
    assert [refused.reasons for refused in tried.refused] == [("not_null_fruit",)]


def test_a_run_reads_its_partitions_and_fails_where_it_computes_rows_of_others(try_table):
    rows = [
        {"order_id": 1, "day": "2026-01-01", "amount": "1"},
        {"day": "2026-01-01", "amount": "1"},
        {"order_id": 2, "day": "2026-01-02", "amount": "1"},
    ]
    one_day = try_table(orders_by_day, rows, partitions="2026-01-01")
    both = try_table(orders_by_day, rows, partitions=["2026-01-01", "2026-01-02"])

    assert [row["order_id"] for row in one_day.rows] == [None, 1]
    assert one_day.failed == {"in_partitions": "1 of 2 rows"}
    assert (len(both.rows), both.failed) == (3, {})


@pytest.mark.long
def test_a_rule_that_refers_to_another_table_needs_its_rows(try_table: TryTable) -> None:
    orders = [{"order_id": 1}, {"order_id": 1}]
    alone = try_table(copies, orders)
    beside = try_table(copies, orders, other_tables={KNOWN.name: [{"order_id": 2}]})

    assert alone.warned == {"unique_order_id": "1 of 2 rows"}
    assert alone.not_evaluated == [rule.name for rule in COPY.rules[1:]]
    assert [*beside.failed, *beside.warned] == [rule.name for rule in reversed(COPY.rules)]
    assert not beside.not_evaluated


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"oder_id": 1}], "orders has no column 'oder_id'; did you mean order_id?"),
        ([{"order_id": "x"}], "orders has str in its column order_id"),
        ([{"day": 3.5}], "orders has float in its column day"),
        ({"order": []}, "gold.orders has no input 'order'; did you mean orders?"),
        ({}, "gold.orders has no rows for its input orders"),
        (Path("a.csv"), "gold.orders was given the file a.csv, and no feed fills it"),
    ],
)
def test_rows_that_cannot_be_are_named(try_table: TryTable, rows: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        try_table(orders_by_day, rows)

    assert message in str(raised.value)
