"""Compute the expected tables for any set of delivered files, regardless of their order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from lakehouse.sample_data.bnpl.row_outcomes import (
    CLEAN,
    OUTCOMES,
    QUARANTINED,
    assign_outcomes,
)
from lakehouse.sample_data.bnpl.truth_rows import REASONS


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

    def as_json(self) -> dict[str, Any]:
        """Return the values as stored in `truth.json`."""
        return asdict(self)


def truth_of(files: Sequence[Path], *, each: Callable[[], None] = lambda: None) -> Truth:
    """Compute the expected results for some files.

    :param each: called after each file.
    """
    rows = assign_outcomes(files, each=each)
    clean = _with_approved(rows[rows["outcome"] == CLEAN])
    names = sorted(file.name for file in files)
    return Truth(
        rows_by_file=_counts(rows["file"], names),
        totals={"bronze": len(rows), **_counts(rows["outcome"], OUTCOMES)},
        quarantined_by_reason=_by_reason(rows[rows["outcome"] == QUARANTINED]),
        clean_by_day=_by_day(clean),
        customers=clean["customer_id"].nunique(),
        daily_summary=_daily_summary(clean),
    )


def _counts(column: pd.Series, values: Sequence[str]) -> dict[str, int]:
    counts = column.value_counts()
    return {value: int(counts.get(value, 0)) for value in values}


def _by_reason(refused: pd.DataFrame) -> dict[str, int]:
    bits = refused["reasons"].to_numpy()
    counts = {}
    for bit, reason in enumerate(REASONS):
        count = int((bits >> bit & 1).sum())
        if count:
            counts[reason] = count
    return counts


def _by_day(clean: pd.DataFrame) -> dict[str, int]:
    counts = clean["transaction_date"].value_counts().sort_index()
    return {_date(day): count for day, count in zip(counts.index, counts, strict=True)}


def _daily_summary(clean: pd.DataFrame) -> list[DaySummary]:
    summary = clean.groupby(["transaction_date", "currency"]).agg(
        transactions=("amount", "size"),
        approved=("is_approved", "sum"),
        declined=("is_declined", "sum"),
        gross=("amount", "sum"),
        approved_amount=("approved_amount", "sum"),
        customers=("customer_id", "nunique"),
        merchants=("merchant_id", "nunique"),
    )
    return [_summary(row) for row in summary.itertuples()]


def _with_approved(clean: pd.DataFrame) -> pd.DataFrame:
    is_approved = clean["status"] == "APPROVED"
    return clean.assign(
        is_approved=is_approved,
        is_declined=clean["status"] == "DECLINED",
        approved_amount=clean["amount"].where(is_approved, 0),
    )


def _summary(row: Any) -> DaySummary:
    day, currency = row.Index
    decided = row.approved + row.declined
    return DaySummary(
        transaction_date=_date(day),
        currency=currency,
        transactions=row.transactions,
        approved=row.approved,
        declined=row.declined,
        gross_amount=_money(row.gross),
        approved_amount=_money(row.approved_amount),
        average_amount=_average(row.gross, row.transactions),
        approval_rate=row.approved / decided if decided else None,
        distinct_customers=row.customers,
        distinct_merchants=row.merchants,
    )


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=int(day))).isoformat()


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _average(cents: int, count: int) -> str:
    """Return the average of positive amounts with four decimals, rounded half up."""
    ten_thousandths = (2 * cents * 100 + count) // (2 * count)
    return f"{ten_thousandths // 10_000}.{ten_thousandths % 10_000:04}"
