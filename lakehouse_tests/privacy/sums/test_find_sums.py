"""Which tables have a person in their sums follows from what is declared, at any distance."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.privacy.recompute import Sums, SumsTable, find_sums
from lakehouse.settings import Settings
from lakehouse.tables.person import Person
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.privacy.small_lakehouse import declared, erasable_of, personal

pytestmark = pytest.mark.unit

ORDERS = declared("silver.orders", "customer_id", personal("email"), subject="customer_id")
PROFILES = declared("gold.profiles", "customer_id", subject="customer_id")
MERCHANTS = declared("gold.merchants", "merchant_id", "amount", subject="merchant_id")
DAILY = declared("gold.daily", "day", "amount")
MONTHLY = declared("gold.monthly", "month", "amount")
REPORT = declared("gold.report", "month", "region", "amount")
REGIONS = declared("silver.regions", "region")
ANNA = Person("customer_id", frozenset({"7"}))
SOURCES = {
    PROFILES.name: {ORDERS.name},
    MERCHANTS.name: {ORDERS.name},
    DAILY.name: {ORDERS.name},
    MONTHLY.name: {DAILY.name},
    REPORT.name: {MONTHLY.name, REGIONS.name},
}


@pytest.fixture
def sums(engine_without_spark: Engine, settings: Settings):
    """Return a function that finds the sums of some tables."""

    def find(
        *tables: IcebergTable,
        sources: dict[str, set[str]] = SOURCES,
        lost: tuple[str, ...] = (ORDERS.name,),
        shared: tuple[str, ...] = (),
    ) -> Sums:
        by_name = {table.name: table for table in tables}
        for table in tables:
            ensure(engine_without_spark, table)
        erasable = erasable_of(settings, engine_without_spark, by_name, sources)
        return find_sums(erasable, [ANNA], lost, shared)

    return find


def test_sums_of_sums_are_found_in_the_order_of_their_computation(sums) -> None:
    found = sums(REPORT, MONTHLY, DAILY, REGIONS, ORDERS)

    assert found == Sums(
        (
            SumsTable(DAILY.name, deleted=frozenset({ORDERS.name})),
            SumsTable(MONTHLY.name, recomputed=frozenset({DAILY.name})),
            SumsTable(REPORT.name, recomputed=frozenset({MONTHLY.name})),
        )
    )


def test_a_table_of_the_same_people_loses_their_rows_by_itself(sums) -> None:
    assert sums(ORDERS, PROFILES) == Sums()


def test_a_table_of_the_same_people_that_reads_sums_is_computed_after_them(sums) -> None:
    sources = {DAILY.name: {ORDERS.name}, PROFILES.name: {ORDERS.name, DAILY.name}}

    found = sums(ORDERS, PROFILES, DAILY, sources=sources)

    assert found.tables[-1] == SumsTable(PROFILES.name, recomputed=frozenset({DAILY.name}))


def test_what_follows_from_kept_sums_alone_keeps_them_and_is_said_to(sums) -> None:
    kept = replace(MONTHLY, on_erasure="keep")

    found = sums(ORDERS, DAILY, kept, REPORT, REGIONS)

    assert found.names == (DAILY.name,)
    assert found.kept == (MONTHLY.name, REPORT.name)


def test_what_follows_from_kept_sums_and_others_is_computed_anew(sums) -> None:
    kept = replace(MONTHLY, on_erasure="keep")
    sources = {**SOURCES, REPORT.name: {MONTHLY.name, DAILY.name}}

    found = sums(ORDERS, DAILY, kept, REPORT, sources=sources)

    assert found.names == (DAILY.name, REPORT.name)
    assert found.kept == (MONTHLY.name,)


def test_a_table_that_is_erased_by_value_has_sums_too_and_so_has_what_follows(sums) -> None:
    mails = declared("gold.mails", "email", "orders", no_subject="By address alone.")
    total = declared("gold.mails_in_all", "orders")
    sources = {mails.name: {ORDERS.name}, total.name: {mails.name}}

    found = sums(ORDERS, mails, total, sources=sources, lost=(ORDERS.name, mails.name))

    assert found.tables == (
        SumsTable(mails.name, deleted=frozenset({ORDERS.name})),
        SumsTable(
            total.name, deleted=frozenset({mails.name}), recomputed=frozenset({mails.name})
        ),
    )


def test_rows_of_an_address_that_somebody_shares_stay_and_are_computed_anew(sums) -> None:
    readers = declared("gold.readers", "email", "letters", subject="email")
    sources = {readers.name: {ORDERS.name}}

    assert sums(ORDERS, readers, sources=sources) == Sums()
    shared = sums(ORDERS, readers, sources=sources, shared=("a@example.org",))
    assert shared.names == (readers.name,)
