"""Rows of one delivered row that are computed for different keys, and refused by different runs,
stand in the quarantine each by itself.
"""

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import changed_keys, latest
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import SOURCE, content, put

pytestmark = [pytest.mark.spark, whatever_the_catalog, pytest.mark.long]

SHARES = IcebergTable(
    name="silver.shares",
    comment="The share of each person in a delivered bill.",
    columns=[Column("who", "string"), Column("v", "string"), *SOURCE],
    partitioning=["who"],
    write=Append(once_by=()),
)
OWED = IcebergTable(
    name="gold.owed",
    comment="What each person owes.",
    columns=[Column("who", "string"), Column("v", "int"), *SOURCE],
    write=Merge(on=["who"]),
    rules=[castable("v", "int")],
)
QUARANTINE = "gold.owed_quarantine"


def share(engine: Engine, who: str, v: str, file: str) -> None:
    """Add the share of a person in the first row of a file."""
    put(engine, SHARES, [(who, v, file, f"sha-{file}", 1)])


def compute(engine: Engine, *, everything: bool = False) -> None:
    def owed(changed: DataFrame, shares: DataFrame) -> DataFrame:
        return shares.join(changed, "who", "left_semi")

    inputs = {
        "changed": changed_keys(SHARES.name, of="who", by="who"),
        "shares": latest(SHARES.name),
    }
    write(engine, OWED, owed, inputs, Run(reads_everything=everything))


def held(engine: Engine) -> list[tuple]:
    return content(engine, QUARANTINE, "who", "v", "_source_file")


def test_what_is_refused_for_each_key_is_held(engine: Engine) -> None:
    share(engine, "ann", "x", "a")
    share(engine, "cat", "1", "c")
    compute(engine)
    share(engine, "bob", "y", "a")
    compute(engine)
    assert held(engine) == [("ann", "x", "a"), ("bob", "y", "a")]
    compute(engine, everything=True)
    assert held(engine) == [("ann", "x", "a"), ("bob", "y", "a")]
