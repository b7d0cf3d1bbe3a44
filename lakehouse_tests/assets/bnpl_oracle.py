"""The expected rows of silver and the profiles of transactions, computed by pandas."""

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from lakehouse.sample_data.bnpl.truth import CLEAN, assign_outcomes


def clean_rows(paths: Iterable[Path]) -> pd.DataFrame:
    outcomes = assign_outcomes([*paths])
    clean = outcomes.loc[outcomes["outcome"] == CLEAN, ["file", "row", "created_at"]]
    read = [
        frame.assign(file=path.name, row=range(1, len(frame) + 1))
        for path in paths
        for frame in [pd.read_csv(path, dtype=str)]
    ]
    rows = pd.concat(read).merge(clean.rename(columns={"created_at": "moment"}))
    return rows.assign(
        money=rows.amount.map(Decimal), customer=rows.customer_id.astype("int64")
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
