"""What stands after a rejection, where a table reads more than one source: what a backfill of all
that is left would give.
"""

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Published, Unchanged
from lakehouse.iceberg.read.inputs import changed_keys, incremental, latest
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
)
from lakehouse_tests.iceberg.declarations import DELIVERED, content, delivery

pytestmark = [pytest.mark.spark, pytest.mark.long]
ELSEWHERE = replace(DELIVERED, name="bronze.elsewhere")
BOTH = {"here": incremental(DELIVERED.name), "there": incremental(ELSEWHERE.name)}
NUMBERS = IcebergTable(
    name="silver.numbers",
    comment="The number that each name has by the last file.",
    columns=[Column("name", "string"), Column("id", "bigint")],
    write=Merge(on=["name"]),
)
FIRST = replace(DELIVERED, name="silver.first", write=Append(once_by=("name",)))
ORDERS = IcebergTable(
    name="silver.orders",
    comment="Orders with the rate of their shop.",
    columns=[Column("id", "string"), Column("rate", "string")],
    write=Merge(on=["id"]),
)


def by_last_file(here: DataFrame, there: DataFrame) -> DataFrame:
    """Compute `silver.numbers`."""
    last = expr("max_by(CAST(id AS bigint), _source_file)").alias("id")
    return here.unionByName(there).groupBy("name").agg(last)


def first(here: DataFrame, there: DataFrame) -> DataFrame:
    """Compute `silver.first`."""
    rows = here.unionByName(there)
    rank = "row_number() OVER (PARTITION BY name ORDER BY _source_file) AS rank"
    return rows.selectExpr("*", rank).where("rank = 1").drop("rank")


def with_rates(orders: DataFrame, shops: DataFrame) -> DataFrame:
    """Compute `silver.orders`."""
    rates = shops.groupBy("name").agg(expr("max_by(id, _source_file)").alias("rate"))
    return orders.join(rates, "name", "left").select("id", "rate")


def of_changed(changed: DataFrame, orders: DataFrame, shops: DataFrame) -> DataFrame:
    """Compute `silver.orders`, of the orders that changed."""
    return with_rates(orders.join(changed, "id", "left_semi"), shops)


def land(engine: Engine, table: IcebergTable, file: str, *rows: tuple[str, str]) -> None:
    write(engine, table, delivery(engine, file, list(rows)))


def reject(engine: Engine, table: IcebergTable, file: str) -> None:
    its = RejectedDelivery(file, f"sha-{file}")
    with session_with(engine.spark, its.to_summary(by="somebody", why="why")):
        engine.sql(f"DELETE FROM {engine.catalog.sql_name(table.name)} WHERE {its.deleted_by}")


def test_what_another_source_gave_comes_back(embedded_engine: Engine) -> None:
    land(embedded_engine, ELSEWHERE, "a", ("1", "bob"))
    land(embedded_engine, DELIVERED, "b", ("2", "cat"))
    write(embedded_engine, NUMBERS, by_last_file, BOTH)
    land(embedded_engine, DELIVERED, "c", ("8", "bob"), ("9", "eve"))
    write(embedded_engine, NUMBERS, by_last_file, BOTH)
    assert content(embedded_engine, NUMBERS.name) == [("bob", 8), ("cat", 2), ("eve", 9)]
    reject(embedded_engine, DELIVERED, "c")
    done = write(embedded_engine, NUMBERS, by_last_file, BOTH)
    assert content(embedded_engine, NUMBERS.name) == [("bob", 1), ("cat", 2)]
    assert isinstance(done, Published)
    assert (done.updated_rows, done.removed_rows) == (1, 1)
    assert isinstance(write(embedded_engine, NUMBERS, by_last_file, BOTH), Unchanged)


def test_what_an_append_passed_over_of_another_source_is_appended(
    embedded_engine: Engine,
) -> None:
    land(embedded_engine, DELIVERED, "a", ("1", "ann"))
    land(embedded_engine, ELSEWHERE, "b", ("2", "bob"))
    write(embedded_engine, FIRST, first, BOTH)
    land(embedded_engine, ELSEWHERE, "c", ("3", "ann"))
    write(embedded_engine, FIRST, first, BOTH)
    assert content(embedded_engine, FIRST.name, "name", "id") == [("ann", "1"), ("bob", "2")]
    reject(embedded_engine, DELIVERED, "a")
    write(embedded_engine, FIRST, first, BOTH)
    assert content(embedded_engine, FIRST.name, "name", "id") == [("ann", "3"), ("bob", "2")]


def test_keys_that_did_not_change_are_computed_again_without_what_went(
    embedded_engine: Engine,
) -> None:
    inputs = {
        "changed": changed_keys(DELIVERED.name, of="id", by="name"),
        "orders": latest(DELIVERED.name),
        "shops": latest(ELSEWHERE.name),
    }
    land(embedded_engine, ELSEWHERE, "a", ("7", "north"))
    land(embedded_engine, ELSEWHERE, "b", ("8", "north"))
    land(embedded_engine, DELIVERED, "c", ("1", "north"))
    write(embedded_engine, ORDERS, of_changed, inputs)
    assert content(embedded_engine, ORDERS.name) == [("1", "8")]
    reject(embedded_engine, ELSEWHERE, "b")
    write(embedded_engine, ORDERS, of_changed, inputs)
    assert content(embedded_engine, ORDERS.name) == [("1", "7")]
