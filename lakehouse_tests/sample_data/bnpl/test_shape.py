"""The transactions look like those of a shop: some days, merchants and customers have more than
others.
"""

import pandas as pd
import pytest

from lakehouse.sample_data.bnpl.row_outcomes import assign_outcomes
from lakehouse_tests.sample_data.bnpl.delivered import delivered, sample_files


@pytest.fixture(scope="module")
def clean(quarter) -> pd.DataFrame:
    """What the transactions come to, with the day as a moment."""
    rows = assign_outcomes(sample_files(quarter)).query("outcome == 'clean'")
    return rows.assign(day=pd.to_datetime(rows["transaction_date"], unit="D"))


@pytest.fixture(scope="module")
def by_day(clean) -> pd.Series:
    return clean.groupby("day").size()


@pytest.mark.long
def test_a_day_of_the_weekend_has_more_than_a_weekday(by_day):
    weekend = by_day.index.day_of_week >= 5

    assert 1.25 <= by_day[weekend].mean() / by_day[~weekend].mean() <= 1.55


def test_a_day_after_payday_has_more_than_another(by_day):
    payday = (by_day.index.day >= 25) | (by_day.index.day == 1)

    assert 1.15 <= by_day[payday].mean() / by_day[~payday].mean() <= 1.45


def test_ten_merchants_have_a_large_share_and_many_have_some(clean):
    merchants = clean["merchant_id"].value_counts(normalize=True)

    assert 0.30 <= merchants.iloc[:10].sum() <= 0.50
    assert (merchants < 0.001).sum() >= 1000


def test_most_transactions_are_of_customers_who_come_again(clean):
    times = clean["customer_id"].value_counts()

    assert 0.90 <= times[times > 1].sum() / len(clean) <= 0.995
    assert (times == 1).sum() >= 100


@pytest.mark.long
def test_customers_have_a_method_that_they_prefer(quarter):
    lines = delivered(quarter).query("payment_method != '' and customer_id != ''")
    methods = lines.groupby(["customer_id", "payment_method"]).size().unstack(fill_value=0)
    often = methods[methods.sum(axis="columns") >= 10]

    assert set(methods.columns) == {"card", "wallet", "bank_transfer"}
    assert 0.7 <= (often.max(axis="columns") / often.sum(axis="columns")).mean() <= 0.9


@pytest.mark.long
def test_some_pay_at_once_and_some_in_instalments(quarter):
    shares = delivered(quarter)["installments"].value_counts(normalize=True)

    assert all(shares[number] > 0.03 for number in ("1", "3", "6", "12"))


@pytest.mark.long
def test_some_buy_around_midnight_on_the_day_of_their_own_clock(quarter):
    lines = delivered(quarter)
    hours, days = lines["created_at"].str[11:14], lines["created_at"].str[:10]

    for hour in ("23:", "00:"):
        at = lines[(hours == hour) & (days == lines["transaction_date"])]
        assert len(at) >= 200
    readable = lines[
        lines["created_at"].str.match(r"\d{4}-.*T")
        & ~lines["created_at"].str.startswith("2025-02-30")
    ]
    assert readable["created_at"].str.endswith("+08:00").all()


def test_every_transaction_is_of_one_of_the_days_generated(clean):
    assert (clean["day"].min(), clean["day"].max()) == (
        pd.Timestamp("2026-01-05"),
        pd.Timestamp("2026-04-05"),
    )
