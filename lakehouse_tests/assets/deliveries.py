"""Files of transactions written line by line, and the tables that they go to."""

from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse_tests.assets.pipeline import Pipeline

HEADER = (
    "transaction_id,customer_id,merchant_id,merchant_category,amount,currency,installments,status,"
    "transaction_date,created_at,customer_email,region"
)
RAW = "bronze.bnpl_transactions_raw"
CLEAN = "silver.bnpl_transactions_clean"
QUARANTINE = "silver.bnpl_transactions_quarantine"
SUMMARY = "gold.bnpl_daily_summary"
PROFILES = "gold.customer_profiles"
DAYS = [f"2026-03-{day:02}" for day in range(1, 6)]


def line(
    transaction: object,
    day: str,
    *,
    amount: str = "10.00",
    customer: int = 7,
    at: str = "12:00",
    **other: str,
) -> str:
    created = other.get("created", f"{day}T{at}:00+08:00")
    status = other.get("status", "APPROVED")
    return f"{transaction},{customer},M1,food,{amount},MYR,3,{status},{day},{created},a@example.com,Penang"


def put(pipeline: Pipeline, name: str, *lines: str, second: int = 0) -> IngestResult:
    pipeline.write(name, "\n".join([HEADER, *lines]), second=second)
    return pipeline.ingest()
