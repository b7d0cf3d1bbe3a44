"""The columns that a function returns, compared with its table's on inputs without rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from lakehouse.errors import ComputeFailed, FrameMismatch, LakehouseError, TableNotFound
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION
from lakehouse.iceberg.read.inputs import Input, latest
from lakehouse.iceberg.rules.rows import castable
from lakehouse.ingestion.table_trials import TableTrials
from lakehouse.orchestration.table_function import TableFunction
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.table import Column, IcebergTable, Overwrite
from lakehouse_tests.conftest import whatever_the_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = whatever_the_catalog

SALES = IcebergTable(
    name="bronze.sales",
    comment="Sales.",
    columns=[
        Column("day", "date"),
        Column("amount", "decimal(20,3)"),
        Column("code", "string"),
    ],
    write=Overwrite(),
)
TOTALS = IcebergTable(
    name="gold.totals",
    comment="The sum of a day.",
    columns=[Column("day", "date"), Column("total", "decimal(20,3)"), Column("count", "int")],
    write=Overwrite(),
)
CODES = IcebergTable(
    name="silver.codes",
    comment="Codes as numbers.",
    columns=[Column("code", "bigint")],
    write=Overwrite(),
    rules=[castable("code", "bigint")],
)
FEED = Feed(
    "prices",
    [FeedColumn("id"), FeedColumn("price", type="double")],
    "bronze.prices",
    formats="jsonl",
)


def totals(query: str) -> "Callable[[DataFrame], DataFrame]":
    return lambda sales: sales.groupBy("day").agg(*_expressions(query))


def _expressions(query: str) -> list[object]:
    from pyspark.sql.functions import expr

    return [expr(part) for part in query.split("; ")]


def check(engine: Engine, *functions: TableFunction) -> None:
    declared = {table.name: table for table in (SALES, TOTALS, CODES)}
    trials = TableTrials(
        engine,
        {function.table.name: function for function in functions},
        declared,
        NO_SUPPRESSION.filter(),
        limit=0,
    )
    for function in functions:
        trials.check_function(function.table.name)


def of_sales(
    table: IcebergTable, compute: "Callable[..., DataFrame]", **more: Input
) -> TableFunction:
    return TableFunction(table, compute, {"sales": latest(SALES.name), **more})


def test_columns_that_fit_or_are_cast_pass_without_a_table(engine: Engine) -> None:
    check(
        engine,
        of_sales(TOTALS, totals("sum(amount) AS total; count(*) AS count")),
        of_sales(CODES, lambda sales: sales.select("code")),
        of_sales(SALES, lambda sales, own: sales.unionByName(own), own=latest(SALES.name)),
        TableFunction(bronze_table(FEED, "Prices."), lambda rows: rows, feed=FEED),
    )


@pytest.mark.parametrize(
    ("compute", "error", "words"),
    [
        (
            totals("max(code) AS total; first(day) > day AS count"),
            FrameMismatch,
            ["column total is string", "decimal(20,3)", "column count is boolean"],
        ),
        (totals("sum(amount) AS sum; count(*) AS count"), FrameMismatch, ["total", "sum"]),
        (totals("sum(price) AS total"), ComputeFailed, ["price", "plan --functions"]),
        (lambda sales: sales.first()["day"], ComputeFailed, ["gold.totals"]),
        (lambda sales: None, FrameMismatch, ["None"]),
    ],
)
def test_columns_that_do_not_fit_are_named(
    engine: Engine,
    compute: "Callable[[DataFrame], DataFrame]",
    error: type[LakehouseError],
    words: list[str],
) -> None:
    with pytest.raises(error) as raised:
        check(engine, of_sales(TOTALS, compute))
    assert not [word for word in words if word not in str(raised.value)]


def test_a_feed_gives_its_declared_types(engine: Engine) -> None:
    def lists(rows: "DataFrame") -> "DataFrame":
        return rows.selectExpr("* EXCEPT (price)", "array(price) AS price")

    with pytest.raises(FrameMismatch, match="column price is array<double> in the frame"):
        check(engine, TableFunction(bronze_table(FEED, "Prices."), lists, feed=FEED))


def test_an_input_that_is_neither_declared_nor_there_is_named(engine: Engine) -> None:
    function = TableFunction(CODES, lambda other: other, {"other": latest("bronze.other")})
    with pytest.raises(TableNotFound, match=r"silver\.codes reads bronze\.other"):
        check(engine, function)
