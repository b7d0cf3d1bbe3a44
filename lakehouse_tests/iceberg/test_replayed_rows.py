"""Refused rows that a corrected function brings into the table, whatever the table is."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import Input, incremental, latest
from lakehouse.iceberg.rules.rows import castable, excluded
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.ingestion.delivery_decisions import publish
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite, WriteMode
from lakehouse_tests.iceberg.declarations import DELIVERED, content, delivery

pytestmark = [pytest.mark.spark, pytest.mark.long]
QUARANTINE = "silver.numbers_quarantine"

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
    [
        Merge(on=["name"]),
        pytest.param(Append(once_by=("name",)), marks=pytest.mark.soak),
        pytest.param(Overwrite(), marks=pytest.mark.soak),
    ],
    ids=["merge", "append", "overwrite"],
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


@pytest.mark.parametrize(
    "mode",
    [Append(), pytest.param(Merge(on=["name"]), marks=pytest.mark.soak)],
    ids=["append", "merge"],
)
def test_what_a_person_publishes_leaves_the_quarantine(
    delivered: Engine, settings: Settings, mode: WriteMode
) -> None:
    """A row is in the table or in the quarantine; what the published run refused stays there."""
    no_bob = excluded("name", ["bob"], on_failure="block")
    table = replace(WITH_SOURCE, write=mode, rules=[*WITH_SOURCE.rules, no_bob])
    inputs = {"delivered": incremental(DELIVERED.name)}
    write(delivered, table, as_it_came, inputs, Run("one"))
    assert content(delivered, QUARANTINE, "id", "name") == [("two", "bob"), ("x", "cat")]

    everything = Run("two", reads_everything=True)
    assert isinstance(write(delivered, table, corrected, inputs, everything), Refused)
    assert content(delivered, QUARANTINE, "id", "name") == [("two", "bob"), ("x", "cat")]
    publish(settings, delivered, table, "two", by="ann", why="bob is right")

    assert content(delivered, table.name, "id", "name") == [(1, "ann"), (2, "bob")]
    assert content(delivered, QUARANTINE, "id", "name") == [("x", "cat")]
    main = read_history(delivered, QUARANTINE).main
    assert main and main.commit and main.commit.follows
