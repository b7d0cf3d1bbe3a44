"""The samples' functions by themselves: rows in, rows out, and what the rules refuse."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from lakehouse.assets.bronze.bnpl_transactions_raw import bnpl_transactions_raw
from lakehouse.assets.gold.bnpl_daily_summary import bnpl_daily_summary
from lakehouse.assets.gold.customer_profiles import customer_profiles
from lakehouse.assets.silver.bnpl_transactions_clean import bnpl_transactions_clean
from lakehouse.assets.silver.fruits import fruits
from lakehouse.testing.table_fixture import TryTable

pytestmark = pytest.mark.spark


def fruit(
    number: str, name: str | None, berry: str = "false", file: str = "a.csv"
) -> dict[str, Any]:
    return {"id": number, "fruit": name, "berry": berry, "_source_file": file}


def test_the_first_row_of_a_fruit_within_a_file_counts(try_table: TryTable) -> None:
    tried = try_table(fruits, [fruit("1", "Apple"), fruit("2", "Apple", "true")])

    assert tried.rows == [{"id": 1, "fruit": "Apple", "berry": False}]


def test_a_later_file_wins_and_of_one_moment_the_last_by_name(try_table: TryTable) -> None:
    early, late = "2026-01-01", "2026-01-02"
    tried = try_table(
        fruits,
        [
            fruit("1", "Apple", file="z.csv") | {"_source_modified_at": early},
            fruit("2", "Apple", file="a.csv") | {"_source_modified_at": late},
            fruit("3", "Apple", file="b.csv") | {"_source_modified_at": late},
        ],
    )

    assert [row["id"] for row in tried.rows] == [3]


def test_a_fruit_without_a_name_that_can_be_seen_is_rejected(try_table: TryTable) -> None:
    names = ["Apple", "  ", "", "\u3000\u00a0", None]
    tried = try_table("silver.fruits", [fruit("1", name) for name in names])

    assert [row["fruit"] for row in tried.rows] == ["Apple"]
    assert [refused.reasons for refused in tried.refused] == [
        ("not_null_fruit",),
        *[("not_blank_fruit",)] * 3,
    ]


def test_a_fruit_whose_id_is_no_number_is_rejected_as_it_was_delivered(
    try_table: TryTable,
) -> None:
    tried = try_table(fruits, [fruit("two", "Kiwi", "true"), {"fruit": "Plum"}])

    assert tried.rows == [{"id": None, "fruit": "Plum", "berry": None}]
    (refused,) = tried.refused
    assert (refused.row["id"], refused.row["fruit"], refused.row["berry"]) == (
        "two",
        "Kiwi",
        "true",
    )
    assert refused.reasons == ("castable_id",)


def test_a_fruit_that_is_left_out_comes_in_no_spelling(try_table: TryTable) -> None:
    tried = try_table(fruits, [fruit("1", "Banana"), fruit("2", "Kiwi"), fruit("3", "BANANA ")])

    assert [row["fruit"] for row in tried.rows] == ["Kiwi", "BANANA "]
    assert tried.failed == {"excluded_fruit_in_any_spelling": "1 of 2 rows"}


def delivered(transaction: int, day: str, **other: Any) -> dict[str, Any]:
    return {
        "transaction_id": str(transaction),
        "customer_id": "7",
        "merchant_id": "M1",
        "amount": "10.00",
        "currency": "MYR",
        "installments": "3",
        "status": "APPROVED",
        "transaction_date": day,
        "created_at": f"{day}T12:00:00+08:00",
        "customer_email": "a@example.com",
        "_event_date": day,
        "_ingested_at": "2026-03-09T16:30:00+00:00",
        **other,
    }


def test_moments_of_a_transaction_fall_on_the_days_they_have_in_kuala_lumpur(
    try_table: TryTable,
) -> None:
    moments = ["2026-03-02T15:30:00Z", "2026-03-02T16:30:00Z", "2026-03-02 23:30:00", "soon"]
    tried = try_table(
        bnpl_transactions_raw,
        [{"transaction_id": "1", "transaction_date": moment} for moment in moments],
    )

    days = {row["transaction_date"]: row["_event_date"] for row in tried.rows}
    assert [days[moment] for moment in moments] == [
        date(2026, 3, 2),
        date(2026, 3, 3),
        date(2026, 3, 2),
        None,
    ]


@pytest.mark.parametrize(("ingested", "is_accepted"), [("15:30", False), ("16:30", True)])
def test_today_begins_at_midnight_in_kuala_lumpur(
    try_table: TryTable, ingested: str, is_accepted: bool
) -> None:
    """At 15:30 UTC it is 23:30 there, and tomorrow's date is refused; at 16:30 UTC it is
    tomorrow.
    """
    moment = f"2026-03-09T{ingested}:00+00:00"
    tried = try_table(
        bnpl_transactions_clean,
        [delivered(70, "2026-03-10", created_at=moment, _ingested_at=moment)],
    )

    assert len(tried.rows) == is_accepted
    reasons = [refused.reasons for refused in tried.refused]
    assert reasons == ([] if is_accepted else [("date_in_range",)])


def clean(
    customer: int, day: str, status: str = "APPROVED", amount: str = "10.00"
) -> dict[str, Any]:
    return {
        "customer_id": customer,
        "transaction_date": day,
        "status": status,
        "amount": amount,
        "currency": "MYR",
        "payment_method": "CARD",
    }


def test_a_day_is_summed_from_its_own_rows(try_table: TryTable) -> None:
    tried = try_table(
        bnpl_daily_summary,
        [
            clean(1, "2026-03-01"),
            clean(2, "2026-03-01", "DECLINED", "2.50"),
            clean(2, "2026-03-02"),
        ],
        partitions="2026-03-01",
    )

    (row,) = tried.rows
    assert row["transaction_date"] == date(2026, 3, 1)
    assert (row["transactions"], row["approved"], row["declined"]) == (2, 1, 1)
    assert (row["gross_amount"], row["average_amount"]) == (Decimal("12.50"), Decimal("6.2500"))
    assert (row["approval_rate"], row["distinct_customers"]) == (0.5, 2)
    assert not tried.failed


@pytest.mark.long
def test_a_customer_without_transactions_is_removed(try_table: TryTable) -> None:
    tried = try_table(
        customer_profiles,
        {"transactions": [clean(1, "2026-03-01"), clean(1, "2026-03-04")]},
        existing=[{"customer_id": 2, "transactions": 3}],
    )

    (row,) = tried.rows
    assert (row["customer_id"], row["transactions"]) == (1, 2)
    assert row["total_amount"] == {"MYR": Decimal("20.00")}
    assert row["average_amount"] == {"MYR": Decimal("10.0000")}
    assert (row["preferred_payment_method"], row["approval_rate"]) == ("CARD", 1.0)
    assert row["last_transaction_date"] == date(2026, 3, 4)
    assert tried.removed == [{"customer_id": 2}]
