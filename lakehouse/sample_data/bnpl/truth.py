"""Compute the expected tables for delivered files, independently of the generator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv

TYPED = (
    "transaction_id",
    "customer_id",
    "amount",
    "installments",
    "transaction_date",
    "created_at",
)
"""The columns that are cast from text."""
COLUMNS = (*TYPED, "merchant_id", "currency", "status")
"""The required columns."""
ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "currency": ("MYR", "SGD", "IDR", "THB", "PHP"),
    "installments": ("1", "3", "6", "12"),
    "status": ("PENDING", "APPROVED", "DECLINED", "REFUNDED"),
}
FIRST_DATE, LAST_DATE = "2020-01-01", "2899-12-31"
"""The last date represents today: no date is between the last generated day and 2999."""
REASONS = (
    *(f"castable_{column}" for column in TYPED),
    *(f"not_null_{column}" for column in COLUMNS),
    *(f"accepted_{column}" for column in ACCEPTED),
    "positive_amount",
    "date_in_range",
)
OUTCOMES = CLEAN, SUPERSEDED, QUARANTINED = ("clean", "superseded", "quarantined")

_LARGEST_BIGINT = "9223372036854775807"
_DATE = r"\d{4}-\d\d-\d\d"
_TIMESTAMP = rf"{_DATE}T\d\d:\d\d:\d\d(\.\d{{1,6}})?(Z|[+-]\d\d:\d\d)"


@dataclass(frozen=True)
class DaySummary:
    """A row of the daily summary; amounts are text, to preserve all digits."""

    transaction_date: str
    currency: str
    transactions: int
    approved: int
    declined: int
    gross_amount: str
    approved_amount: str
    average_amount: str
    approval_rate: float | None
    distinct_customers: int
    distinct_merchants: int


@dataclass(frozen=True)
class Truth:
    """The expected results for a set of files."""

    rows_by_file: Mapping[str, int]
    totals: Mapping[str, int]
    """Rows in `bronze`, of which `clean`, `superseded` and `quarantined`."""
    quarantined_by_reason: Mapping[str, int]
    """A row that is rejected for two reasons counts for both."""
    clean_by_day: Mapping[str, int]
    customers: int
    daily_summary: Sequence[DaySummary]


def truth_of(files: Sequence[Path]) -> Truth:
    """Compute the expected results for some files."""
    rows = assign_outcomes(files)
    clean = rows[rows["outcome"] == CLEAN]
    reasons = rows.loc[rows["outcome"] == QUARANTINED, list(REASONS)].sum()
    names = sorted(file.name for file in files)
    return Truth(
        rows_by_file=_counts(rows["file"], names),
        totals={"bronze": len(rows), **_counts(rows["outcome"], OUTCOMES)},
        quarantined_by_reason={str(name): int(n) for name, n in reasons.items() if n},
        clean_by_day=_counts(
            clean["transaction_date"], sorted(clean["transaction_date"].unique())
        ),
        customers=clean["customer_id"].nunique(),
        daily_summary=daily_summary(clean),
    )


def assign_outcomes(files: Sequence[Path]) -> pd.DataFrame:
    """Return all rows of the files with their `outcome`: `clean`, `superseded` or
    `quarantined`.

    Among the valid rows of a transaction, the one with the greatest (created_at, file name,
    row) is clean. A rejected row is superseded by a greater valid row of its transaction, or by
    any valid row if its own created_at is unreadable.
    """
    ordered = sorted(files, key=lambda file: file.name)
    rows = pd.concat([read_rows(file) for file in ordered], ignore_index=True)
    # Rows are ordered by (file name, row), and a stable sort preserves this order.
    by_age = rows[rows["is_valid"]].sort_values("created_at", kind="stable")
    newest = by_age.drop_duplicates("transaction_id", keep="last")
    winners = pd.DataFrame(
        {
            "transaction_id": newest["transaction_id"],
            "newest": newest["created_at"],
            "winner": newest.index,
        }
    )
    versions = rows[["transaction_id", "created_at"]].merge(winners, "left", "transaction_id")
    created = versions["created_at"]
    is_newer = (versions["newest"] > created) | (
        (versions["newest"] == created) & (versions["winner"] > versions.index)
    )
    is_overtaken = versions["winner"].notna() & (created.isna() | is_newer)
    outcome = pd.Series(QUARANTINED, index=rows.index)
    outcome[rows["is_valid"] | is_overtaken] = SUPERSEDED
    outcome[newest.index] = CLEAN
    return rows.assign(outcome=pd.Categorical(outcome, OUTCOMES))


def read_rows(file: Path) -> pd.DataFrame:
    """Return a file's typed rows, numbered from 1, with one Boolean column per reason.

    `amount` is in cents. Values that cannot be cast are NULL.
    """
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(COLUMNS, pa.string()),
        include_columns=list(COLUMNS),
        strings_can_be_null=True,
        null_values=[""],
    )
    table = csv.read_csv(file, convert_options=options)
    texts = table.to_pandas(types_mapper=lambda _: pd.StringDtype("pyarrow"))
    rows = texts.assign(
        file=file.name,
        row=range(1, len(texts) + 1),
        transaction_id=_integers(texts["transaction_id"]),
        customer_id=_integers(texts["customer_id"]),
        amount=_cents(texts["amount"]),
        installments=_matching(texts["installments"], r"\d{1,9}"),
        transaction_date=_dates(texts["transaction_date"]),
        created_at=pd.to_datetime(
            _matching(texts["created_at"], _TIMESTAMP).astype(object),
            format="ISO8601",
            utc=True,
            errors="coerce",
        ),
    )
    reasons = _reasons(texts, rows)
    return rows.assign(**reasons, is_valid=~pd.DataFrame(reasons).any(axis=1))


def _matching(texts: pd.Series, pattern: str) -> pd.Series:
    return texts.where(texts.str.fullmatch(pattern).fillna(False))


def _integers(texts: pd.Series) -> pd.Series:
    digits = _matching(texts, r"-?\d{1,18}|\d{19}")
    is_bigint = digits.str.zfill(19) <= _LARGEST_BIGINT
    return digits.where(is_bigint.fillna(False)).astype("Int64")


def _cents(texts: pd.Series) -> pd.Series:
    """Return the cents of a decimal(10,2); NULL for values that do not fit exactly."""
    # Below 2^53 a float represents ten digits exactly.
    amounts = _matching(texts, r"-?\d{1,8}(\.\d{1,2})?").astype("Float64")
    return (amounts * 100).round().astype("Int64")


def _dates(texts: pd.Series) -> pd.Series:
    """Return dates as ISO text, whose order is that of the dates."""
    dates = _matching(texts, _DATE)
    return dates.where(dates.isin(list(filter(_is_date, dates.dropna().unique()))))


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _reasons(texts: pd.DataFrame, rows: pd.DataFrame) -> dict[str, pd.Series]:
    dates = rows["transaction_date"]
    failed = {
        **{f"castable_{name}": texts[name].notna() & rows[name].isna() for name in TYPED},
        **{f"not_null_{name}": texts[name].isna() for name in COLUMNS},
        **{
            f"accepted_{name}": rows[name].notna() & ~rows[name].isin(values)
            for name, values in ACCEPTED.items()
        },
        "positive_amount": rows["amount"] <= 0,
        "date_in_range": (dates < FIRST_DATE) | (dates > LAST_DATE),
    }
    return {name: mask.fillna(False).astype(bool) for name, mask in failed.items()}


def _counts(column: pd.Series, values: Sequence[str]) -> dict[str, int]:
    counts = column.value_counts()
    return {value: int(counts.get(value, 0)) for value in values}


def daily_summary(clean: pd.DataFrame) -> list[DaySummary]:
    """Return the daily summary of clean rows."""
    is_approved = clean["status"] == "APPROVED"
    summary = (
        clean.assign(
            is_approved=is_approved,
            is_declined=clean["status"] == "DECLINED",
            approved_amount=clean["amount"].where(is_approved, 0),
        )
        .groupby(["transaction_date", "currency"])
        .agg(
            transactions=("amount", "size"),
            approved=("is_approved", "sum"),
            declined=("is_declined", "sum"),
            gross=("amount", "sum"),
            approved_amount=("approved_amount", "sum"),
            customers=("customer_id", "nunique"),
            merchants=("merchant_id", "nunique"),
        )
    )
    return [_summary(row) for row in summary.itertuples()]


def _summary(row: Any) -> DaySummary:
    day, currency = row.Index
    approved, declined = int(row.approved), int(row.declined)
    gross = Decimal(int(row.gross)).scaleb(-2)
    average = (gross / row.transactions).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return DaySummary(
        transaction_date=day,
        currency=currency,
        transactions=int(row.transactions),
        approved=approved,
        declined=declined,
        gross_amount=str(gross),
        approved_amount=str(Decimal(int(row.approved_amount)).scaleb(-2)),
        average_amount=str(average),
        approval_rate=approved / (approved + declined) if approved + declined else None,
        distinct_customers=int(row.customers),
        distinct_merchants=int(row.merchants),
    )
