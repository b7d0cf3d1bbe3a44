"""What stands after a rejection, where a table reads more than one source: what a backfill of all
that is left would give.
"""

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Partitions, Run
from lakehouse.iceberg.metadata.write_result import Published, Unchanged
from lakehouse.iceberg.read.inputs import incremental, latest, versions_of
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.iceberg.write.row_versions import newest_accepted
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    OverwritePartitions,
    Versions,
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
HIGHEST = replace(
    NUMBERS, name="silver.highest", versions=Versions(of="name", newest="id"), rules=[]
)
FIRST = replace(DELIVERED, name="silver.first", write=Append(once_by=("name",)))
ORDERS = IcebergTable(
    name="silver.orders",
    comment="Orders with the rate of their shop.",
    columns=[Column("id", "string"), Column("rate", "string")],
    write=Merge(on=["id"]),
)

PLACES = replace(
    DELIVERED,
    name="silver.places",
    comment="Where each was by the last file.",
    partitioning=["name"],
    write=OverwritePartitions(by="name"),
    versions=Versions(of="id", newest="_source_file"),
)


def by_last_file(here: DataFrame, there: DataFrame) -> DataFrame:
    """Compute `silver.numbers`."""
    last = expr("max_by(CAST(id AS bigint), _source_file)").alias("id")
    return here.unionByName(there).groupBy("name").agg(last)


def highest(here: DataFrame, there: DataFrame) -> DataFrame:
    """Compute `silver.highest`."""
    rows = here.unionByName(there).selectExpr("name", "CAST(id AS bigint) AS id")
    return newest_accepted(HIGHEST, rows)


def first(here: DataFrame, there: DataFrame) -> DataFrame:
    """Compute `silver.first`."""
    rows = here.unionByName(there)
    rank = "row_number() OVER (PARTITION BY name ORDER BY _source_file) AS rank"
    return rows.selectExpr("*", rank).where("rank = 1").drop("rank")


def with_rates(orders: DataFrame, shops: DataFrame) -> DataFrame:
    """Compute `silver.orders`."""
    rates = shops.groupBy("name").agg(expr("max_by(id, _source_file)").alias("rate"))
    return orders.join(rates, "name", "left").select("id", "rate")


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


def test_a_late_version_of_another_source_displaces_no_newer_one(
    embedded_engine: Engine,
) -> None:
    land(embedded_engine, ELSEWHERE, "a", ("6", "bob"))
    land(embedded_engine, DELIVERED, "b", ("9", "eve"))
    write(embedded_engine, HIGHEST, highest, BOTH)
    reject(embedded_engine, DELIVERED, "b")
    land(embedded_engine, ELSEWHERE, "c", ("2", "bob"))
    write(embedded_engine, HIGHEST, highest, BOTH)
    assert content(embedded_engine, HIGHEST.name) == [("bob", 6)]


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


def test_an_older_version_of_another_source_comes_back_to_its_partition(
    embedded_engine: Engine,
) -> None:
    """The rejected delivery had nothing there."""
    here, there = (replace(table, partitioning=["name"]) for table in (DELIVERED, ELSEWHERE))
    inputs = {"here": versions_of(here, by="name"), "there": versions_of(there, by="name")}

    def compute() -> None:
        places = tuple(sorted(stale_values(embedded_engine, PLACES, inputs)))
        run = Run("run", Partitions(places), full_recompute=False)
        write(embedded_engine, PLACES, lambda here, there: here.unionByName(there), inputs, run)

    land(embedded_engine, there, "a", ("1", "north"), ("2", "west"))
    land(embedded_engine, here, "b", ("3", "south"))
    compute()
    land(embedded_engine, here, "c", ("1", "south"))
    compute()
    assert content(embedded_engine, PLACES.name, "id", "name") == [
        ("1", "south"),
        ("2", "west"),
        ("3", "south"),
    ]
    reject(embedded_engine, here, "c")
    compute()
    assert content(embedded_engine, PLACES.name, "id", "name") == [
        ("1", "north"),
        ("2", "west"),
        ("3", "south"),
    ]
    assert not stale_values(embedded_engine, PLACES, inputs)


def test_rows_that_were_joined_with_what_went_are_computed_again(
    embedded_engine: Engine,
) -> None:
    inputs = {"orders": incremental(DELIVERED.name), "shops": latest(ELSEWHERE.name)}
    land(embedded_engine, ELSEWHERE, "a", ("7", "north"))
    land(embedded_engine, ELSEWHERE, "b", ("8", "north"), ("9", "south"))
    land(embedded_engine, DELIVERED, "c", ("1", "north"), ("2", "south"))
    write(embedded_engine, ORDERS, with_rates, inputs)
    assert content(embedded_engine, ORDERS.name) == [("1", "8"), ("2", "9")]
    reject(embedded_engine, ELSEWHERE, "b")
    write(embedded_engine, ORDERS, with_rates, inputs)
    assert content(embedded_engine, ORDERS.name) == [("1", "7"), ("2", None)]


def test_a_source_that_is_read_in_full_again_displaces_no_newer_row_of_another(
    embedded_engine: Engine,
) -> None:
    """Rows of the one went that nobody rejected, such as old ones that it no longer keeps."""
    land(embedded_engine, ELSEWHERE, "a", ("1", "bob"), ("2", "cat"))
    land(embedded_engine, DELIVERED, "b", ("3", "dan"))
    write(embedded_engine, NUMBERS, by_last_file, BOTH)
    land(embedded_engine, DELIVERED, "c", ("8", "bob"))
    write(embedded_engine, NUMBERS, by_last_file, BOTH)
    embedded_engine.sql(
        f"DELETE FROM {embedded_engine.catalog.sql_name(ELSEWHERE.name)} WHERE name = 'cat'"
    )
    write(embedded_engine, NUMBERS, by_last_file, BOTH)
    assert content(embedded_engine, NUMBERS.name) == [("bob", 8), ("cat", 2), ("dan", 3)]
