"""`silver.bnpl_transactions_clean`: one row for each transaction, its newest valid version, by
day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.assets.bronze.bnpl_transactions_raw import FEED
from lakehouse.assets.bronze.bnpl_transactions_raw import TABLE as RAW
from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.rules.rows import (
    accepted,
    castable,
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
    columns=[
        Column("transaction_id", "bigint", "Identifier of the transaction."),
        Column("customer_id", "bigint", "Identifier of the customer.", profiled=True),
        Column("merchant_id", "string", "Identifier of the merchant.", profiled=True),
        Column("merchant_category", "string", "What the merchant sells."),
        Column("amount", "decimal(10,2)", "Amount in units of the currency."),
        Column("currency", "string", "ISO 4217 code."),
        Column("installments", "int", "In how many parts the amount is paid."),
        Column(
            "payment_method",
            "string",
            "What the instalments are paid with; NULL where the file did not tell.",
            profiled=True,
        ),
        Column("status", "string", "PENDING, APPROVED, DECLINED or REFUNDED."),
        Column("transaction_date", "date", "Day of the transaction in Asia/Kuala_Lumpur."),
        Column("created_at", "timestamp", "When the source wrote this version."),
        Column("customer_email", "string", "Address of the customer.", personal=True),
        Column("region", "string", "Where the transaction was made.", profiled=True),
        Column("_source_file", "string", "The delivered file that this version came with."),
        Column("_source_sha256", "string", "SHA-256 of that file's content."),
        Column(
            "_source_row",
            "bigint",
            "Number of the row in its file, the first after the header being 1.",
        ),
        Column("_ingested_at", "timestamp", "When the ingest began that landed this version."),
    ],
    # Days in the feed's time zone.
    write=by_day("transaction_date", since="2020-01-01", time_zone=FEED.time_zone),
    quarantine_name="silver.bnpl_transactions_quarantine",
    # Equal in the first three, a file that was delivered again under its name with other
    # content wins.
    versions=Versions(
        of="transaction_id",
        newest=("created_at", "_source_file", "_source_row", "_ingested_at", "_source_sha256"),
    ),
    rules=[
        castable("transaction_id", "bigint"),
        not_null("transaction_id"),
        castable("customer_id", "bigint"),
        not_null("customer_id"),
        not_null("merchant_id"),
        not_blank("merchant_id"),
        castable("amount", "decimal(10,2)"),
        not_null("amount"),
        expression("positive_amount", "amount > 0", columns=["amount"]),
        not_null("currency"),
        accepted("currency", ["MYR", "SGD", "IDR", "THB", "PHP"]),
        castable("installments", "int"),
        not_null("installments"),
        accepted("installments", [1, 3, 6, 12]),
        not_null("status"),
        accepted("status", ["PENDING", "APPROVED", "DECLINED", "REFUNDED"]),
        castable("transaction_date", "date", time_zone=FEED.time_zone),
        not_null("transaction_date"),
        dated(
            "transaction_date",
            since="2020-01-01",
            until="_ingested_at",
            time_zone=FEED.time_zone,
            name="date_in_range",
            description="transaction_date is from 2020-01-01 to the day of the ingest",
        ),
        castable("created_at", "timestamp", time_zone=FEED.time_zone),
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
    subject="customer_id",
    owner="data-platform",
)


@iceberg_asset(TABLE, inputs={"delivered": versions_of(RAW, by="_event_date")})
def bnpl_transactions_clean(delivered: DataFrame) -> DataFrame:
    """One row for each transaction: of its versions the newest valid one, whatever came first.

    A day is computed from the rows that it has and what came since, or in full from all
    deliveries of that day; a version that came with another day counts too, and moves the
    transaction. Rows that the rules refuse stand in `silver.bnpl_transactions_quarantine` until
    a valid version of them arrives.
    """
    return delivered
