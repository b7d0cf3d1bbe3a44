"""`silver.bnpl_transactions_clean`: the newest valid version of each transaction, by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.assets.bronze.bnpl_transactions_raw import TABLE as RAW
from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.rules.rows import (
    accepted,
    dated,
    expression,
    not_after,
    not_blank,
    not_null,
)
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Versions, by_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = IcebergTable(
    name="silver.bnpl_transactions_clean",
    comment="One row for each transaction: its newest valid version.",
    # Text is cast to the column types; omitted properties are inherited.
    rows_of=RAW,
    columns=[
        Column("transaction_id", "bigint", "Identifier of the transaction."),
        Column("customer_id", "bigint", profiled=True),
        Column("merchant_id", "string", profiled=True),
        Column("merchant_category", "string"),
        Column("amount", "decimal(10,2)", "Amount in units of the currency."),
        Column("currency", "string"),
        Column("installments", "int"),
        Column(
            "payment_method",
            "string",
            "What the instalments are paid with; NULL where the file did not tell.",
            profiled=True,
        ),
        Column("status", "string", "PENDING, APPROVED, DECLINED or REFUNDED."),
        Column("transaction_date", "date", "Day of the transaction in Asia/Kuala_Lumpur."),
        Column("created_at", "timestamp", "When the source wrote this version."),
        Column("customer_email", "string"),
        Column("region", "string", profiled=True),
    ],
    write=by_day("transaction_date", since="2020-01-01"),
    quarantine_name="silver.bnpl_transactions_quarantine",
    # If the first three are equal, a file delivered again with other content wins.
    versions=Versions(
        of="transaction_id",
        newest=("created_at", "_source_file", "_source_row", "_ingested_at", "_source_sha256"),
    ),
    rules=[
        not_null("transaction_id"),
        not_null("customer_id"),
        not_null("merchant_id"),
        not_blank("merchant_id"),
        not_null("amount"),
        expression("positive_amount", "amount > 0", columns=["amount"]),
        not_null("currency"),
        accepted("currency", ["MYR", "SGD", "IDR", "THB", "PHP"]),
        not_null("installments"),
        accepted("installments", [1, 3, 6, 12]),
        not_null("status"),
        accepted("status", ["PENDING", "APPROVED", "DECLINED", "REFUNDED"]),
        not_null("transaction_date"),
        dated(
            "transaction_date",
            since="2020-01-01",
            until="_ingested_at",
            time_zone=RAW.wall_time_zone,
            name="date_in_range",
            description="transaction_date is from 2020-01-01 to the day of the ingest",
        ),
        not_null("created_at"),
        not_after("created_at", "_ingested_at", days=1),
        unique("transaction_id"),
        expression(
            "well_formed_customer_email",
            "customer_email RLIKE '^[^@ ]+@[^@ ]+[.][^@ ]+$'",
            columns=["customer_email"],
            description="customer_email looks like an address",
            on_failure="warn",
        ),
    ],
    owner="data-platform",
)


@iceberg_asset(TABLE, inputs={"delivered": versions_of(RAW, by="_event_date")})
def bnpl_transactions_clean(delivered: DataFrame) -> DataFrame:
    """One row per transaction: its newest valid version, regardless of arrival order.

    A day is computed incrementally from its rows and the new versions, or in full from all
    deliveries of that day. A version with another date moves the transaction to that day.
    Rejected rows are in `silver.bnpl_transactions_quarantine` until a valid version arrives.
    """
    return delivered
