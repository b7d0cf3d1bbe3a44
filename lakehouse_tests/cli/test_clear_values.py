"""A result with personal values says so, once, by column and table."""

import pytest

from lakehouse.cli.sql_text.clear_values import ShownColumns
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.tables.table import Append, Column, IcebergTable

PAID = IcebergTable(
    "silver.paid",
    "Who paid what.",
    [
        Column("customer", "bigint"),
        Column("email", "string", personal=True),
        Column("amount", "int"),
    ],
    Append(once_by=()),
    rules=[not_null("amount")],
    subject="customer",
)
TABLES = {table.name: table for table in (PAID, PAID.quarantine) if table}


def notice(*statements: tuple[str, list[str]]) -> str | None:
    shown = ShownColumns()
    for statement, columns in statements:
        shown.add(statement, columns)
    return shown.notice(lambda: sorted(TABLES), lambda: TABLES)


@pytest.mark.parametrize(
    ("statement", "columns", "named"),
    [
        (
            "SELECT * FROM silver.paid",
            ["customer", "email", "amount"],
            "customer, email of silver.paid",
        ),
        (
            "TABLE silver.paid",
            ["customer", "email", "amount"],
            "customer, email of silver.paid",
        ),
        ("SELECT upper(email) AS x FROM paid", ["x"], "email of silver.paid"),
        ("SELECT x FROM (SELECT email AS x FROM silver.paid)", ["x"], "email of silver.paid"),
        ("FROM silver.paid |> SELECT EMAIL", ["EMAIL"], "email of silver.paid"),
        (
            "SELECT customer, 1 FROM silver.paid_quarantine",
            ["customer", "1"],
            "customer of silver.paid_quarantine",
        ),
    ],
)
def test_it_names_what_is_shown(statement: str, columns: list[str], named: str) -> None:
    assert notice((statement, columns)) == f"This shows personal values in clear: {named}."


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("SELECT amount FROM silver.paid WHERE customer = 7", ["amount"]),
        (
            "SELECT count(email) AS n, count(DISTINCT customer) AS m FROM silver.paid",
            ["n", "m"],
        ),
        ("SELECT email FROM other.customers", ["email"]),
        ("INSERT INTO tutorial.t SELECT email FROM silver.paid", []),
    ],
)
def test_it_says_nothing_where_none_is(statement: str, columns: list[str]) -> None:
    assert notice((statement, columns)) is None


def test_a_view_that_was_made_before_is_seen_through() -> None:
    made = ("CREATE TEMPORARY VIEW v AS SELECT email AS x FROM silver.paid", [])
    assert (
        notice(made, ("SELECT x FROM v", ["x"]))
        == "This shows personal values in clear: email of silver.paid."
    )
