"""`gold.bnpl_daily_summary`: daily transaction metrics by currency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.assets.silver.bnpl_transactions_clean import TABLE as CLEAN
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.rows import expression, not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import schema_as_declared
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, by_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = IcebergTable(
    name="gold.bnpl_daily_summary",
    comment="One row for each day and currency: transactions in figures.",
    columns=[
        Column("transaction_date", "date", "Day of the transactions in Asia/Kuala_Lumpur."),
        Column("currency", "string", "ISO 4217 code of all amounts in the row."),
        Column("transactions", "bigint", "How many there were, of any status."),
        Column("approved", "bigint", "How many of them are approved."),
        Column("declined", "bigint", "How many of them are declined."),
        Column("gross_amount", "decimal(20,2)", "Sum of all amounts."),
        Column(
            "approved_amount", "decimal(20,2)", "Sum of the approved amounts; 0 where none is."
        ),
        Column(
            "average_amount", "decimal(12,4)", "Gross amount by transactions, rounded half up."
        ),
        Column(
            "approval_rate",
            "double",
            "Share of approved among approved and declined, 0 to 1; NULL without any.",
        ),
        Column("distinct_customers", "bigint", "How many customers the transactions are of."),
        Column("distinct_merchants", "bigint", "How many merchants they were made with."),
    ],
    write=by_day("transaction_date", like=CLEAN),
    rules=[
        not_null("transaction_date", on_failure="block"),
        unique("transaction_date", "currency"),
        expression(
            "approved_within_gross",
            "approved_amount <= gross_amount AND approved + declined <= transactions",
            columns=["approved_amount", "gross_amount", "approved", "declined", "transactions"],
            on_failure="block",
        ),
        # A query of the run's days, which Iceberg usually answers from row counts in metadata.
        reconciles(CLEAN, here="sum(transactions)", by="transaction_date"),
        schema_as_declared(on_failure="warn"),
    ],
    owner="data-platform",
)


@iceberg_asset(TABLE, inputs={"transactions": latest(CLEAN, by="transaction_date")})
def bnpl_daily_summary(transactions: DataFrame) -> DataFrame:
    """Daily transaction metrics by currency: number, amount and approval rate."""
    from pyspark.sql.functions import expr

    figures = {
        "transactions": "count(1)",
        "approved": "count_if(status = 'APPROVED')",
        "declined": "count_if(status = 'DECLINED')",
        "gross_amount": "CAST(sum(amount) AS decimal(20,2))",
        "approved_amount": "CAST(sum(if(status = 'APPROVED', amount, 0)) AS decimal(20,2))",
        "average_amount": "CAST(sum(amount) / count(1) AS decimal(12,4))",
        "approval_rate": (
            "count_if(status = 'APPROVED') / nullif(count_if(status IN ('APPROVED',"
            " 'DECLINED')), 0)"
        ),
        "distinct_customers": "count(DISTINCT customer_id)",
        "distinct_merchants": "count(DISTINCT merchant_id)",
    }
    grouped = transactions.groupBy("transaction_date", "currency")
    return grouped.agg(*(expr(sql).alias(name) for name, sql in figures.items()))
