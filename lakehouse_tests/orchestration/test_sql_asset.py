"""A query in a file computes a table as a function does."""

import importlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.table_function import function_of
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.cli.projects import forget
from lakehouse_tests.frames import frame_of
from lakehouse_tests.iceberg.declarations import content, rows_of

SALES = """
import dagster as dg
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import expression
from lakehouse.orchestration.sql_asset import sql_asset
from lakehouse.tables.table import Column, IcebergTable, by_day

TABLE = IcebergTable(
    name="gold.sales_daily",
    comment="One row for each day.",
    columns=[
        Column("sold_on", "date"),
        Column("sales", "bigint"),
        Column("codes", "bigint"),
    ],
    write=by_day("sold_on", since="2026-01-01"),
    rules=[expression("few", "sales < 3", columns=["sales"])],
)
SOURCE = dg.AssetSpec(["silver", "sales"])
INPUTS = {"sales": latest("silver.sales", by="sold_on")}
"""
QUERY = """
-- Sales of each day.
-- Those with a code of three digits are counted.
WITH known AS (SELECT *, code RLIKE '^[0-9]{3}$' AS has_code FROM sales)
SELECT sold_on, count(1) AS sales, count_if(has_code) AS codes
FROM known GROUP BY sold_on;
"""
RAW = IcebergTable(
    name="silver.sales",
    comment="Sales.",
    columns=[Column("sold_on", "date"), Column("code", "string")],
    partitioning=["days(sold_on)"],
    write=Append(once_by=()),
)
Define = Callable[..., dg.AssetsDefinition]


@pytest.fixture
def define(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Define]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").write_text("")

    def write_files(
        query: str = QUERY, asset: str = "daily = sql_asset(TABLE, inputs=INPUTS)"
    ) -> dg.AssetsDefinition:
        (folder / "sales_daily.py").write_text(f"{SALES}\n{asset}\n")
        (folder / "sales_daily.sql").write_text(query)
        forget("shop")
        importlib.invalidate_caches()
        return importlib.import_module("shop.sales_daily").daily

    yield write_files
    forget("shop")


def version(asset: dg.AssetsDefinition) -> str | None:
    (found,) = asset.code_versions_by_key.values()
    return found


@pytest.mark.long
def test_a_query_is_computed_and_its_rows_are_judged_as_those_of_a_function(
    define: Define, build, embedded_engine: Engine
) -> None:
    rows = [("2026-01-01", "123"), ("2026-01-01", "x"), ("2026-01-02", "1")]
    rows += [("2026-01-03", "456")] * 3
    stamped = [(date.fromisoformat(day), code) for day, code in rows]
    write(embedded_engine, RAW, rows_of(embedded_engine, "sold_on date, code string", stamped))
    result = build(define(), partition=("2026-01-01", "2026-01-03"))

    assert result.success, result.messages
    assert content(embedded_engine, "gold.sales_daily", "sold_on", "sales", "codes") == [
        (date(2026, 1, 1), 2, 1), (date(2026, 1, 2), 1, 0)
    ]  # fmt: skip
    quarantined = content(embedded_engine, "gold.sales_daily_quarantine", "sales")
    # As a quarantine has all, as text.
    assert quarantined == [("3",)]
    # A misspelt column is found in its line of the file.
    wrong = build(
        define(QUERY.replace("count_if(has_code)", "count_if(had_code)")),
        partition="2026-01-01",
    )
    (message,) = wrong.messages
    assert "gold.sales_daily: shop/sales_daily.sql:5: " in message
    assert "had_code" in message
    assert "Correct the query" in message


def test_inputs_are_views_of_no_session(define: Define, spark) -> None:
    query = function_of(define())
    assert query is not None
    schema = "sold_on date, code string"

    def count(number: int) -> int:
        frame = frame_of(spark, schema, [(date(2026, 1, 1), "1")] * number)
        return query.compute(sales=frame).collect()[0].sales

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(count, range(1, 9))) == list(range(1, 9))
    assert not spark.catalog.tableExists("sales")


@pytest.mark.unit
def test_what_a_query_is_said_of_it(define: Define) -> None:
    asset = define()
    (spec,) = asset.specs
    assert spec.description == (
        "Sales of each day.\nThose with a code of three digits are counted."
    )
    assert "sql" in spec.kinds
    assert spec.deps


@pytest.mark.unit
def test_the_text_is_the_version_of_the_code(define: Define) -> None:
    before = version(define())
    assert before == version(
        define(QUERY.replace("-- Sales of", "-- All of").replace(", ", ",\n"))
    )
    assert before != version(define(QUERY.replace("{3}", "{4}")))


@pytest.mark.unit
@pytest.mark.parametrize(
    "query, said",
    [
        ("", "shop/sales_daily.sql is empty; expected a SELECT."),
        ("-- Nothing.\n;", "shop/sales_daily.sql is empty"),
        ("\n\nDELETE FROM sales", "shop/sales_daily.sql:3 begins with 'DELETE'; expected a SELECT."),
        ("SELECT 1 FROM sales;\nSELECT 2", "shop/sales_daily.sql:1 holds more than one statement"),
        ("SELECT *\nFROM sale", "sales_daily.sql:2 reads sale, which is none of its inputs; did you mean sales?"),
        ("SELECT *\nFROM silver.sales", "reads silver.sales, which is none of its inputs; "),
        ("SELECT 1", "shop/sales_daily.sql does not read the input sales"),
    ],
)  # fmt: skip
def test_a_query_that_cannot_be_right_is_an_error_that_names_its_line(
    define: Define, query: str, said: str
) -> None:
    with pytest.raises(DeclarationError) as raised:
        define(query)
    assert str(raised.value).startswith("gold.sales_daily: ")
    assert said in str(raised.value)
