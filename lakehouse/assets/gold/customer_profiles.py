"""`gold.customer_profiles`: one row per customer, from all of their transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.assets.silver.bnpl_transactions_clean import TABLE as CLEAN
from lakehouse.iceberg.read.inputs import changed_keys
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.rows import expression, not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import (
    row_count_change,
    schema_as_declared,
)
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = IcebergTable(
    name="gold.customer_profiles",
    comment="One row for each customer who has a transaction.",
    columns=[
        Column("customer_id", "bigint", "Identifier of the customer."),
        Column("first_transaction_date", "date", "Day of the first transaction."),
        Column("last_transaction_date", "date", "Day of the last transaction."),
        Column("transactions", "bigint", "How many there are, of any status."),
        Column("approved", "bigint", "How many of them are approved."),
        Column("declined", "bigint", "How many of them are declined."),
        Column("total_amount", "map<string,decimal(20,2)>", "Sum of the amounts, by currency."),
        Column(
            "average_amount",
            "map<string,decimal(12,4)>",
            "Average amount, rounded half up, by currency.",
        ),
        Column(
            "preferred_payment_method",
            "string",
            "The method of most transactions, the first by name of several; NULL where none is"
            " known.",
        ),
        Column(
            "approval_rate",
            "double",
            "Share of approved among approved and declined, 0 to 1; NULL without any.",
        ),
        Column("updated_at", "timestamp", "When the profile last changed."),
    ],
    write=Merge(on=["customer_id"], stamp="updated_at"),
    # A late file changes few of many customers; copy-on-write would rewrite nearly all files.
    row_level="merge-on-read",
    rules=[
        not_null("customer_id", on_failure="block"),
        unique("customer_id"),
        expression(
            "dates_in_order",
            "first_transaction_date <= last_transaction_date",
            columns=["first_transaction_date", "last_transaction_date"],
            on_failure="block",
        ),
        # Scans one column of all profiles: only the total, which includes unchanged profiles,
        # can detect a changed customer that was skipped.
        reconciles(CLEAN, here="sum(transactions)"),
        row_count_change(at_least=-0.5, on_failure="warn"),
        schema_as_declared(on_failure="warn"),
    ],
    subject="customer_id",
    owner="data-platform",
)


@iceberg_asset(
    TABLE,
    inputs={
        "customers": changed_keys(CLEAN, of="customer_id", by="transaction_date"),
        "transactions": CLEAN,
    },
)
def customer_profiles(customers: DataFrame, transactions: DataFrame) -> DataFrame:
    """One row per customer: when they bought, how often, how much in each currency, and their
    preferred payment method.

    A profile is recomputed if a transaction of the customer was added, removed or changed. It
    is deleted if none remain.
    """
    from pyspark.sql.functions import expr

    # One shuffle is sufficient for all groupings below. Spark omits it if the join already made
    # it.
    theirs = transactions.join(customers, "customer_id", "left_semi").repartition("customer_id")
    by_currency = theirs.groupBy("customer_id", "currency", "payment_method").agg(
        *(expr(sql) for sql in _COUNTS), expr("sum(amount) AS amount")
    )
    by_currency = by_currency.groupBy("customer_id", "currency").agg(
        *(expr(sql) for sql in _SUMS),
        expr("sum(amount) AS amount"),
        expr("collect_list(struct(payment_method, transactions)) AS methods"),
    )
    profiles = by_currency.groupBy("customer_id").agg(
        *(expr(sql) for sql in _SUMS),
        expr(
            "map_from_entries(collect_list(struct(currency, CAST(amount AS decimal(20,2))))) AS"
            " total_amount"
        ),
        expr(
            "map_from_entries(collect_list(struct(currency, CAST(amount / transactions AS"
            " decimal(12,4))))) AS average_amount"
        ),
        expr("flatten(collect_list(methods)) AS methods"),
    )
    known = profiles.selectExpr(
        "*",
        f"{_PREFERRED} AS preferred_payment_method",
        "approved / nullif(approved + declined, 0) AS approval_rate",
    ).drop("methods")
    return customers.join(known, "customer_id", "left").selectExpr(
        "*", "transactions IS NULL AS _deleted"
    )


_COUNTS = (
    "min(transaction_date) AS first_transaction_date",
    "max(transaction_date) AS last_transaction_date",
    "count(1) AS transactions",
    "count_if(status = 'APPROVED') AS approved",
    "count_if(status = 'DECLINED') AS declined",
)
_SUMS = (
    "min(first_transaction_date) AS first_transaction_date",
    "max(last_transaction_date) AS last_transaction_date",
    "sum(transactions) AS transactions",
    "sum(approved) AS approved",
    "sum(declined) AS declined",
)
_COUNTED = (
    "aggregate(filter(methods, m -> m.payment_method = method), 0L, (n, m) -> n +"
    " m.transactions)"
)
_PREFERRED = (
    "get(array_sort(transform(array_distinct(filter(methods.payment_method, method -> method"
    f" IS NOT NULL)), method -> struct(-{_COUNTED} AS fewest, method AS method))), 0).method"
)
