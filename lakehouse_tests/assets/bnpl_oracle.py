"""The expected gold tables of transactions, computed by pandas."""

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pandas as pd

CURRENCIES = ["MYR", "SGD", "IDR", "THB", "PHP"]
STATUSES = ["PENDING", "APPROVED", "DECLINED", "REFUNDED"]
NEVER_BLANK = [
    "transaction_id",
    "customer_id",
    "merchant_id",
    "amount",
    "currency",
    "status",
    "created_at",
]


def clean_rows(paths: Iterable[Path]) -> pd.DataFrame:
    read = [pd.read_csv(path, dtype=str).assign(file=path.name) for path in paths]
    rows = pd.concat(
        [frame.assign(row=range(1, len(frame) + 1)) for frame in read], ignore_index=True
    )
    rows = rows[_is_valid(rows)].assign(
        moment=lambda found: pd.to_datetime(found.created_at, utc=True)
    )
    newest = rows.sort_values(["moment", "file", "row"]).drop_duplicates(
        "transaction_id", keep="last"
    )
    return newest.assign(
        money=newest.amount.map(Decimal), customer=newest.customer_id.astype("int64")
    )


def _is_valid(rows: pd.DataFrame) -> pd.Series:
    day = pd.to_datetime(rows.transaction_date, format="%Y-%m-%d", errors="coerce")
    moment = pd.to_datetime(rows.created_at, errors="coerce", utc=True)
    return (
        rows.transaction_id.fillna("").str.fullmatch(r"\d+")
        & rows.customer_id.fillna("").str.fullmatch(r"\d+")
        & rows.merchant_id.notna()
        & rows.amount.fillna("").str.fullmatch(r"\d{1,8}(\.\d{1,2})?")
        & ~rows.amount.fillna("").str.fullmatch(r"0+(\.0+)?")
        & rows.currency.isin(CURRENCIES)
        & rows.installments.isin(["1", "3", "6", "12"])
        & rows.status.isin(STATUSES)
        & day.between("2020-01-01", pd.Timestamp.now(tz="Asia/Kuala_Lumpur").tz_localize(None))
        & moment.notna()
    )


def daily_summary(clean: pd.DataFrame) -> dict[tuple[str, str], tuple]:
    return {
        key: _figures(group) for key, group in clean.groupby(["transaction_date", "currency"])
    }


def _figures(group: pd.DataFrame) -> tuple:
    approved, declined = _count(group, "APPROVED"), _count(group, "DECLINED")
    return (
        len(group),
        approved,
        declined,
        sum(group.money),
        sum(group.money[group.status == "APPROVED"], Decimal("0.00")),
        _average(group.money),
        _rate(approved, declined),
        group.customer.nunique(),
        group.merchant_id.nunique(),
    )


def profiles(clean: pd.DataFrame) -> dict[int, tuple]:
    return {key: _profile(group) for key, group in clean.groupby("customer")}


def _profile(group: pd.DataFrame) -> tuple:
    approved, declined = _count(group, "APPROVED"), _count(group, "DECLINED")
    by_currency = {currency: list(part.money) for currency, part in group.groupby("currency")}
    return (
        group.transaction_date.min(),
        group.transaction_date.max(),
        len(group),
        approved,
        declined,
        {currency: sum(amounts) for currency, amounts in by_currency.items()},
        {currency: _average(amounts) for currency, amounts in by_currency.items()},
        _preferred(group.payment_method),
        _rate(approved, declined),
    )


def _preferred(methods: pd.Series) -> str | None:
    counts = methods.value_counts()
    return min(counts[counts == counts.max()].index) if len(counts) else None


def _count(group: pd.DataFrame, status: str) -> int:
    return int((group.status == status).sum())


def _average(amounts: Any) -> Decimal:
    return (sum(amounts) / len(amounts)).quantize(Decimal("0.0001"), ROUND_HALF_UP)


def _rate(approved: int, declined: int) -> float | None:
    return approved / (approved + declined) if approved + declined else None
