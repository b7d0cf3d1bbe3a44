"""The truth of generated files is what a slow reading of them, row by row and in plain Python,
comes to.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from lakehouse.sample_data.bnpl.truth import DaySummary
from lakehouse_tests.sample_data.bnpl.delivered import records

CURRENCIES = {"MYR", "SGD", "IDR", "THB", "PHP"}
STATUSES = {"PENDING", "APPROVED", "DECLINED", "REFUNDED"}


def whole(text: str) -> int:
    number = int(text)
    assert number < 2**63
    return number


def money(text: str) -> Decimal:
    assert re.fullmatch(r"-?\d{1,8}(\.\d\d?)?", text)
    return Decimal(text)


READERS: dict[str, Callable[[str], Any]] = {
    "transaction_id": whole,
    "customer_id": whole,
    "amount": money,
    "installments": whole,
    "transaction_date": date.fromisoformat,
    "created_at": datetime.fromisoformat,
}
NEEDED = (*READERS, "merchant_id", "currency", "status")


def read(text: str, reader: Callable[[str], Any]) -> Any:
    try:
        return reader(text) if text else None
    except (ValueError, AssertionError, ArithmeticError):
        return None


def reasons(raw: dict[str, Any], typed: dict[str, Any]) -> Iterator[str]:
    yield from (f"castable_{name}" for name in READERS if raw[name] and typed[name] is None)
    yield from (f"not_null_{name}" for name in NEEDED if not raw[name])
    for name, known in (
        ("currency", CURRENCIES),
        ("status", STATUSES),
        ("installments", {1, 3, 6, 12}),
    ):
        if typed[name] not in (None, "", *known):
            yield f"accepted_{name}"
    if typed["amount"] is not None and typed["amount"] <= 0:
        yield "positive_amount"
    if typed["transaction_date"] and not date(2020, 1, 1) <= typed["transaction_date"] < date(
        2900, 1, 1
    ):
        yield "date_in_range"


@pytest.fixture
def rows(least) -> list[dict[str, Any]]:
    """All rows, typed, with their place and the reasons to refuse them."""
    found = []
    for path in least.files:
        for raw in records(path):
            typed = {
                **raw,
                **{name: read(raw[name], reader) for name, reader in READERS.items()},
            }
            typed["place"] = (typed["created_at"], path.name, raw["row"])
            found.append({**typed, "reasons": set(reasons(raw, typed))})
    return found


@pytest.fixture
def clean(rows) -> dict[int, dict[str, Any]]:
    """The row that wins, by transaction."""
    winners: dict[int, dict[str, Any]] = {}
    for row in rows:
        if not row["reasons"] and (
            row["transaction_id"] not in winners
            or winners[row["transaction_id"]]["place"] < row["place"]
        ):
            winners[row["transaction_id"]] = row
    return winners


def stays_refused(row: dict[str, Any], clean: dict[int, dict[str, Any]]) -> bool:
    winner = clean.get(row["transaction_id"])
    if not row["reasons"]:
        return False
    return winner is None or (row["created_at"] is not None and winner["place"] < row["place"])


def test_totals_and_reasons(least, rows, clean):
    refused = [row for row in rows if stays_refused(row, clean)]

    assert least.truth.totals == {
        "bronze": len(rows),
        "clean": len(clean),
        "superseded": len(rows) - len(clean) - len(refused),
        "quarantined": len(refused),
    }
    assert least.truth.quarantined_by_reason == Counter(
        reason for row in refused for reason in row["reasons"]
    )


def test_daily_summary(least, clean):
    days = defaultdict(list)
    for row in clean.values():
        days[row["transaction_date"].isoformat(), row["currency"]].append(row)

    assert least.truth.daily_summary == [summary(*key, days[key]) for key in sorted(days)]


def test_sums_by_currency_and_customers(least, clean):
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for row in clean.values():
        sums[row["currency"]] += row["amount"]

    assert {
        name: Decimal(found.gross_amount)
        for name, found in least.truth.sums_by_currency.items()
    } == sums
    assert least.truth.customers == len({row["customer_id"] for row in clean.values()})


def summary(day: str, currency: str, rows: list[dict[str, Any]]) -> DaySummary:
    statuses = Counter(row["status"] for row in rows)
    gross = sum(row["amount"] for row in rows)
    decided = statuses["APPROVED"] + statuses["DECLINED"]
    return DaySummary(
        transaction_date=day,
        currency=currency,
        transactions=len(rows),
        approved=statuses["APPROVED"],
        declined=statuses["DECLINED"],
        gross_amount=f"{gross:.2f}",
        approved_amount=(
            f"{sum((row['amount'] for row in rows if row['status'] == 'APPROVED'), Decimal()):.2f}"
        ),
        average_amount=str((gross / len(rows)).quantize(Decimal("0.0001"), ROUND_HALF_UP)),
        approval_rate=statuses["APPROVED"] / decided if decided else None,
        distinct_customers=len({row["customer_id"] for row in rows}),
        distinct_merchants=len({row["merchant_id"] for row in rows}),
    )
