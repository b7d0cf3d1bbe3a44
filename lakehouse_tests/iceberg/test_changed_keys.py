"""Tables of `changed_keys` equal a full recompute, for each type of partition column."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import changed_keys, latest
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Merge
from lakehouse_tests.examples import examples, repeated
from lakehouse_tests.iceberg.declarations import content, rows_of

pytestmark = pytest.mark.spark

SOURCE = IcebergTable(
    "silver.payments",
    "Payments.",
    [Column("id", "int"), Column("who", "string"), Column("at", "date"), Column("v", "int")],
    write=Merge(on=["id"]),
    partitioning=["at"],
)
SUMS = IcebergTable(
    "gold.sums",
    "What each has paid.",
    [Column("who", "string"), Column("v", "bigint")],
    write=Merge(on=["who"]),
)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def some_day(chance: random.Random) -> date:
    return chance.choice([date.min, date.max, BEGIN.date() + timedelta(chance.randrange(5))])


def some_moment(chance: random.Random) -> datetime:
    """A moment that is no midnight, but for few."""
    seconds = chance.choice([0, 1, 36_917, 86_399])
    moment = BEGIN + timedelta(chance.randrange(5), seconds, chance.choice([0, 999_999]))
    return chance.choice([moment, moment, moment, datetime(9999, 12, 31, 20, 15, tzinfo=UTC)])


KINDS: dict[str, tuple[str, str, Callable[[random.Random], Any]]] = {
    "date": ("date", "at", some_day),
    "days of dates": ("date", "days(at)", some_day),
    "days": ("timestamp", "days(at)", some_moment),
    "days without a zone": (
        "timestamp_ntz",
        "days(at)",
        lambda chance: some_moment(chance).replace(tzinfo=None),
    ),
    "moment": ("timestamp", "at", some_moment),
    "string": ("string", "at", lambda chance: chance.choice(["", "a/b", "ü 1", "it's"])),
    "int": ("int", "at", lambda chance: chance.choice([-3, 0, 7])),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", repeated(KINDS, tried=["moment", "int"]))
@pytest.mark.parametrize("seed", range(examples(1, 8)))
def test_sums_are_those_of_all_rows_after_each_delivery(
    embedded_engine: Engine, kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    column_type, partitioning, some_value = KINDS[kind]
    columns = [
        replace(one, type=column_type) if one.name == "at" else one for one in SOURCE.columns
    ]
    source = replace(SOURCE, columns=columns, partitioning=[partitioning])
    inputs = {
        "changed": changed_keys(source.name, of="who", by="at"),
        "payments": latest(source.name),
    }
    known: dict[int, tuple[str, Any, int]] = {}
    for _ in range(3):
        came = {
            chance.randrange(12): (
                chance.choice("abc"),
                chance.choice([None, *(some_value(chance) for _ in range(4))]),
                chance.randrange(100),
            )
            for _ in range(4)
        }
        # Whose a payment is stays.
        came = {key: (known.get(key, row)[0], *row[1:]) for key, row in came.items()}
        known |= came
        rows = [(key, *row) for key, row in came.items()]
        schema = ", ".join(f"{one.name} {one.type}" for one in source.columns)
        write(embedded_engine, source, rows_of(embedded_engine, schema, rows))
        write(embedded_engine, SUMS, sums, inputs, Run())

        expected = Counter[str]()
        for who, _, v in known.values():
            expected[who] += v
        assert content(embedded_engine, SUMS.name, "who", "v") == sorted(expected.items())


def sums(changed: DataFrame, payments: DataFrame) -> DataFrame:
    of_changed = payments.join(changed, "who", "left_semi")
    return of_changed.groupBy("who").agg({"v": "sum"}).withColumnRenamed("sum(v)", "v")
