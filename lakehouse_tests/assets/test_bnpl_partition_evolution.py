"""Files of two partition specs are read and overwritten."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from lakehouse.assets.silver.bnpl_transactions_clean import TABLE
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply
from lakehouse.iceberg.metadata.manifests import files
from lakehouse_tests.assets.bnpl_variants import (
    MONDAY,
    TUESDAY,
    WEDNESDAY,
    Row,
    csv_text,
    publish,
    transaction,
)
from lakehouse_tests.assets.deliveries import PROFILES, SUMMARY
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.iceberg.declarations import content, data_files

pytestmark = [pytest.mark.spark, pytest.mark.long]
BUCKETED = replace(TABLE, partitioning=["days(transaction_date)", "bucket(customer_id, 10)"])
CUSTOMERS = range(1, 21)


def of_day(day: date, amount: str = "10.00") -> list[Row]:
    return [
        transaction(100 * day.day + customer, day, customer_id=str(customer), amount=amount)
        for customer in CUSTOMERS
    ]


def of_days(*days: date) -> list[Row]:
    return [row for day in days for row in of_day(day)]


@pytest.fixture
def in_both_specs(filled_engine: Callable[..., Engine]) -> Engine:
    def fill(engine: Engine) -> None:
        publish(engine, TABLE, [MONDAY, WEDNESDAY], *of_day(MONDAY), *of_day(WEDNESDAY))
        apply(engine, BUCKETED)
        publish(engine, BUCKETED, [TUESDAY], *of_day(TUESDAY))
        name = engine.catalog.sql_name(TABLE.name)
        engine.sql(
            f"INSERT INTO {name} SELECT * FROM {name} WHERE transaction_date ="
            f" DATE'{WEDNESDAY}'"
        )

    return filled_engine(fill)


def specs(engine: Engine) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for file in files(engine, TABLE.name):
        found.setdefault(str(file.partition["transaction_date_day"]), set()).add(file.spec_id)
    return found


@pytest.mark.parametrize(
    ("day", "specs_before"),
    [(MONDAY, {0}), (TUESDAY, {1}), (WEDNESDAY, {0, 1})],
    ids=["old spec", "new spec", "both specs"],
)
def test_a_day_is_overwritten_whatever_spec_its_files_follow(
    in_both_specs: Engine, day: date, specs_before: set[int]
) -> None:
    assert specs(in_both_specs)[str(day)] == specs_before
    others = {
        path
        for path in data_files(in_both_specs, TABLE.name)
        if f"transaction_date_day={day}" not in path
    }

    publish(in_both_specs, BUCKETED, [day], *of_day(day, amount="77.00"))

    assert specs(in_both_specs)[str(day)] == {1}
    assert {
        path
        for path in data_files(in_both_specs, TABLE.name)
        if f"transaction_date_day={day}" not in path
    } == others
    amounts = content(
        in_both_specs, TABLE.name, "transaction_date", "CAST(amount AS string)", "customer_id"
    )
    assert sorted(found[2] for found in amounts if found[0] == day) == [*CUSTOMERS]
    assert {found[1] for found in amounts if found[0] == day} == {"77.00"}
    assert {found[1] for found in amounts if found[0] != day} == {"10.00"}


def test_a_late_file_is_followed_to_gold_across_both_specs(bnpl: Pipeline) -> None:
    bnpl.write("monday.csv", csv_text(of_days(MONDAY, TUESDAY)))
    assert bnpl.ingest().success
    apply(bnpl.engine, BUCKETED)
    bnpl.write("wednesday.csv", csv_text(of_day(WEDNESDAY)), second=1)
    assert bnpl.ingest().success
    untouched = {
        path for path in bnpl.paths(TABLE.name) if f"transaction_date_day={MONDAY}" not in path
    }
    bnpl.write(
        "late.csv",
        csv_text([transaction(999, MONDAY, customer_id="7", amount="5.00")]),
        second=2,
    )
    assert bnpl.ingest().success

    assert specs(bnpl.engine) == {str(MONDAY): {1}, str(TUESDAY): {0}, str(WEDNESDAY): {1}}
    assert untouched < bnpl.paths(TABLE.name)
    assert bnpl.rows(
        f"SELECT transaction_date, transactions, gross_amount FROM {SUMMARY} ORDER BY 1"
    ) == [
        (MONDAY, 21, Decimal("205.00")),
        (TUESDAY, 20, Decimal("200.00")),
        (WEDNESDAY, 20, Decimal("200.00")),
    ]
    assert bnpl.rows(f"SELECT transactions FROM {PROFILES} WHERE customer_id = 7") == [(4,)]
