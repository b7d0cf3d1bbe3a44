"""Refused rows that a corrected function brings into the table, whatever the table is."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.read.inputs import Input, changed_keys, incremental, latest
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite, WriteMode
from lakehouse_tests.iceberg.declarations import DELIVERED, content, delivery

pytestmark = pytest.mark.spark

WITH_SOURCE = IcebergTable(
    name="silver.numbers",
    comment="Numbers with their source.",
    columns=[Column("id", "bigint"), *DELIVERED.columns[1:]],
    write=Append(),
    rules=[castable("id", "bigint")],
)
WITHOUT_SOURCE = replace(WITH_SOURCE, columns=WITH_SOURCE.columns[:2], write=Append(once_by=()))


@pytest.fixture
def delivered(filled_engine: Callable[..., Engine]) -> Engine:
    rows = [("1", "ann"), ("two", "bob"), ("x", "cat")]
    return filled_engine(lambda engine: write(engine, DELIVERED, delivery(engine, "a", rows)))


def as_it_came(delivered: DataFrame) -> DataFrame:
    return delivered


def corrected(delivered: DataFrame) -> DataFrame:
    return delivered.selectExpr("decode(id, 'two', '2', id) AS id", *DELIVERED.column_names[1:])


@pytest.mark.parametrize(
    ("read", "keeps_source"),
    [
        (incremental, True),
        (latest, False),
        pytest.param(incremental, False, marks=pytest.mark.soak),
        pytest.param(latest, True, marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize(
    "mode",
    [Append(once_by=("name",)), Merge(on=["name"]), Overwrite()],
    ids=["append", "merge", "overwrite"],
)
def test_what_holds_now_comes_into_the_table_and_what_does_not_stays(
    delivered: Engine, mode: WriteMode, read: "type[Input]", keeps_source: bool
) -> None:
    table = replace(WITH_SOURCE if keeps_source else WITHOUT_SOURCE, write=mode)
    compute = {True: lambda frame: frame, False: lambda frame: frame.select("id", "name")}[
        keeps_source
    ]
    inputs = {"delivered": read(DELIVERED.name)}
    write(delivered, table, lambda delivered: compute(delivered), inputs, Run("one"))
    everything = Run("two", reads_everything=True)
    for _ in range(2):
        write(
            delivered,
            table,
            lambda delivered: compute(corrected(delivered)),
            inputs,
            everything,
        )
        assert content(delivered, table.name, "id", "name") == [(1, "ann"), (2, "bob")]
        assert table.quarantine is not None
        assert content(delivered, table.quarantine.name, "id", "name") == [("x", "cat")]


def test_a_table_that_is_told_changed_keys_is_computed_in_full(embedded_engine: Engine) -> None:
    source = replace(DELIVERED, partitioning=["name"])
    table = replace(WITHOUT_SOURCE, write=Merge(on=["name"]))
    rows = [("1", "ann"), ("two", "bob"), ("x", "cat")]
    write(embedded_engine, source, delivery(embedded_engine, "a", rows))
    inputs = {
        "keys": changed_keys(source.name, of="name", by="name"),
        "delivered": latest(source.name),
    }

    def of_keys(keys: DataFrame, delivered: DataFrame) -> DataFrame:
        return delivered.join(keys, "name", "left_semi").select("id", "name")

    write(embedded_engine, table, of_keys, inputs, Run("one"))
    write(
        embedded_engine,
        table,
        lambda keys, delivered: of_keys(keys, corrected(delivered)),
        inputs,
        Run("two", reads_everything=True),
    )
    assert content(embedded_engine, table.name, "id", "name") == [(1, "ann"), (2, "bob")]
    assert table.quarantine is not None
    assert content(embedded_engine, table.quarantine.name, "id", "name") == [("x", "cat")]
