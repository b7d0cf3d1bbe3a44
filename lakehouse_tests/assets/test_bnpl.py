"""Transactions in any order of delivery come to the expected tables."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse.sample_data.bnpl.generator import Generated, generate
from lakehouse_tests.assets.deliveries import CLEAN, PROFILES, QUARANTINE, RAW, SUMMARY
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.conftest import settings_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = date(2026, 10, 1)
ORDERS = ("in order", "in reverse", "in random batches")
# All but when it was ingested, which differs from home to home.
COLUMNS = (
    "transaction_id, customer_id, merchant_id, merchant_category, amount, currency,"
    " installments, payment_method, status, transaction_date, created_at, customer_email,"
    " region, _source_file, _source_sha256, _source_row"
)
FIGURES = (
    "transactions, approved, declined, gross_amount, approved_amount, average_amount,"
    " approval_rate"
)


def batches(order: str, paths: Sequence[Path]) -> list[list[Path]]:
    if order != "in random batches":
        return [[path] for path in (paths if order == "in order" else paths[::-1])]
    shuffled = random.Random(1).sample(list(paths), len(paths))
    return [shuffled[at : at + 2] for at in range(0, len(shuffled), 2)]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(
        tmp_path_factory.mktemp("generated"), START, days=3, rows_per_day=200, seed=1
    )


@pytest.fixture(scope="module")
def delivered(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, generated: Generated
) -> Pipeline:
    pipeline = Pipeline(settings_at(tmp_path_factory.mktemp("delivered") / "home"), "bnpl")
    assert pipeline.deliver(*generated.files).success
    return pipeline


def check_truth(pipeline: Pipeline, generated: Generated) -> None:
    truth = generated.truth
    for table, expected in {RAW: "bronze", CLEAN: "clean", QUARANTINE: "quarantined"}.items():
        assert pipeline.rows(f"SELECT count(1) FROM {table}") == [(truth.totals[expected],)], (
            table
        )
    reasons = Counter(
        reason
        for (found,) in pipeline.rows(f"SELECT _reasons FROM {QUARANTINE}")
        for reason in found
    )
    assert reasons == truth.quarantined_by_reason
    days = pipeline.rows(
        f"SELECT CAST(transaction_date AS STRING), count(1) FROM {CLEAN} GROUP BY 1"
    )
    assert dict(days) == truth.clean_by_day
    found = pipeline.rows(
        f"SELECT CAST(transaction_date AS STRING), currency, {FIGURES}, distinct_customers,"
        f" distinct_merchants FROM {SUMMARY}"
    )
    assert {tuple(map(text, row)) for row in found} == {
        tuple(map(text, vars(summary).values())) for summary in truth.daily_summary
    }
    assert pipeline.rows(f"SELECT count(1) FROM {PROFILES}") == [(truth.customers,)]


def text(value: object) -> str:
    return f"{value:.12f}" if isinstance(value, float) else str(value)


def states(pipeline: Pipeline) -> dict[str, list[tuple]]:
    return {
        CLEAN: pipeline.rows(f"SELECT {COLUMNS} FROM {CLEAN} ORDER BY transaction_id"),
        QUARANTINE: pipeline.rows(
            f"SELECT _row_key, _reasons FROM {QUARANTINE} ORDER BY _row_key"
        ),
        SUMMARY: pipeline.rows(f"SELECT * FROM {SUMMARY} ORDER BY transaction_date, currency"),
        PROFILES: [
            row[:-1] for row in pipeline.rows(f"SELECT * FROM {PROFILES} ORDER BY customer_id")
        ],
    }


def deliver_in_each_order(
    pipeline: Pipeline, generated: Generated, at_once: Pipeline, orders: Sequence[str] = ORDERS
) -> None:
    found = [states(at_once)]
    check_truth(at_once, generated)
    for order in orders:
        home = pipeline.settings.home / order.replace(" ", "_")
        one = Pipeline(replace(pipeline.settings, home=home), "bnpl")
        for batch in batches(order, generated.files):
            assert one.deliver(*batch).success
        check_truth(one, generated)
        found.append(states(one))
    assert all(state == found[0] for state in found)


@pytest.mark.long
def test_any_order_of_delivery_comes_to_the_truth(
    bnpl: Pipeline, generated: Generated, delivered: Pipeline
) -> None:
    """In order they come in the tests of late files; that, and in reverse, in `make soak`."""
    deliver_in_each_order(bnpl, generated, delivered, ORDERS[2:])


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_ten_days_in_any_order_come_to_the_truth(
    bnpl: Pipeline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    days = generate(tmp_path_factory.mktemp("days"), START, days=10, rows_per_day=5000, seed=1)
    at_once = Pipeline(replace(bnpl.settings, home=bnpl.settings.home / "at_once"), "bnpl")
    assert at_once.deliver(*days.files).success
    deliver_in_each_order(bnpl, days, at_once)
