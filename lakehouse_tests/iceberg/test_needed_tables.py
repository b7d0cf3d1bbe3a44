"""A table is not made for a write that fails, since a table that it reads is not there."""

from dataclasses import replace
from typing import Any

import pytest

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION, SuppressionList
from lakehouse.iceberg.evolve.creation import create_without_spark
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.inputs import Input, latest
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.rules.unique_and_references import references
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Append, Column, IcebergTable

pytestmark = pytest.mark.unit


class SparkIsNeeded(Exception):
    """The write came as far as to begin on Spark."""


def table(name: str, *rules: Rule) -> IcebergTable:
    columns = [Column("id", "bigint"), Column("other", "bigint")]
    return IcebergTable(name, "", columns, Append(once_by=()), rules=rules)


SHOPS = table("silver.shops", references("other", "silver.sales", "id"))
SALES = table("silver.sales", references("other", "silver.shops", "id"))


def no_spark() -> Any:
    raise SparkIsNeeded


@pytest.fixture(params=["settings", "aws_settings"])
def engine(request: pytest.FixtureRequest) -> Engine:
    opened: Settings = request.getfixturevalue(request.param)
    return replace(open_engine(opened), session=no_spark)


def try_to_write(
    engine: Engine,
    declared: IcebergTable,
    inputs: dict[str, Input] | None = None,
    gone: SuppressionList = NO_SUPPRESSION,
) -> None:
    write(engine, declared, no_spark, inputs, gone=gone)


@pytest.mark.parametrize(
    ("declared", "inputs"),
    [
        pytest.param(SALES, {}, id="a reference"),
        pytest.param(table(SALES.name, reconciles(SHOPS)), {}, id="a figure"),
        pytest.param(table(SALES.name), {"shops": latest(SHOPS)}, id="an input"),
    ],
)
def test_where_a_table_that_is_read_is_not_there_none_is_made(
    engine: Engine, declared: IcebergTable, inputs: dict[str, Input]
) -> None:
    declared = replace(declared, rules=[*declared.rules, not_null("id")])
    with pytest.raises(TableNotFound, match=r"^There is no table silver\.shops in the catalog"):
        try_to_write(engine, declared, inputs)
    assert engine.catalog.tables() == []


def test_where_it_is_there_the_table_is_made(engine: Engine) -> None:
    create_without_spark(engine, SHOPS)
    with pytest.raises(SparkIsNeeded):
        try_to_write(engine, SALES)
    assert engine.catalog.tables() == [SALES.name, SHOPS.name]


def test_a_table_may_refer_to_itself(engine: Engine) -> None:
    with pytest.raises(SparkIsNeeded):
        try_to_write(engine, table(SALES.name, references("other", SALES.name, "id")))


def test_of_tables_that_refer_to_each_other_one_is_made_first(engine: Engine) -> None:
    between = table("silver.towns", references("other", SALES.name, "id"))
    shops = replace(SHOPS, rules=[references("other", between.name, "id")])
    declared = {each.name: each for each in (SALES, shops, between)}
    with pytest.raises(SparkIsNeeded):
        try_to_write(engine, SALES, gone=replace(NO_SUPPRESSION, tables=declared))
    assert engine.catalog.tables() == [SALES.name]


def test_of_tables_of_which_one_is_computed_from_the_other_it_refers_to_one_is_made_first(
    engine: Engine,
) -> None:
    declared = {each.name: each for each in (SALES, table(SHOPS.name))}
    sources = {SHOPS.name: ["silver.towns"], "silver.towns": [SALES.name]}
    declared["silver.towns"] = table("silver.towns")
    with pytest.raises(SparkIsNeeded):
        try_to_write(engine, SALES, gone=SuppressionList(tables=declared, sources=sources))
    assert engine.catalog.tables() == [SALES.name]
