"""Silver is partitioned by day, and later by customer too: files of both specs are read,
overwritten and planned by.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame

from lakehouse.assets.silver.bnpl_transactions_clean import TABLE
from lakehouse.iceberg.evolve.planning import apply, ensure
from lakehouse.iceberg.metadata.changed_partitions import changed_values
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.read.inputs import changed_keys, latest
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Merge, OverwritePartitions
from lakehouse_tests.assets.bnpl_variants import (
    MONDAY,
    TUESDAY,
    WEDNESDAY,
    Row,
    csv_text,
    publish,
    renamed,
    transaction,
)
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.iceberg.declarations import content, data_files, run_of, snapshot_id

pytestmark = [pytest.mark.spark, pytest.mark.long]
BUCKETED = replace(TABLE, partitioning=["days(transaction_date)", "bucket(customer_id, 10)"])
SUMMARY, PROFILES = "gold.bnpl_daily_summary", "gold.customer_profiles"
CUSTOMERS = range(1, 21)
BY_DAY = {"transactions": latest(TABLE.name, by="transaction_date")}
SUMS = IcebergTable(
    name="gold.sums",
    comment="What was bought on each day.",
    columns=[Column("transaction_date", "date"), Column("amount", "decimal(20,2)")],
    partitioning=["days(transaction_date)"],
    write=OverwritePartitions(by="transaction_date"),
)
QUESTIONS = {
    "a day": f"transaction_date = DATE'{TUESDAY}'",
    "a customer": "customer_id = 7",
    "a customer's day": f"customer_id = 7 AND transaction_date = DATE'{TUESDAY}'",
    "a range of days": f"transaction_date >= DATE'{TUESDAY}'",
}


def of_day(day: date, amount: str = "10.00") -> list[Row]:
    """One transaction of each customer."""
    return [
        transaction(100 * day.day + customer, day, customer_id=str(customer), amount=amount)
        for customer in CUSTOMERS
    ]


def of_days(*days: date) -> list[Row]:
    """The rows of some days."""
    return [row for day in days for row in of_day(day)]


@pytest.fixture
def evolved(filled_engine: Callable[..., Engine]) -> Engine:
    """Monday by day alone, Tuesday and Wednesday by customer too."""

    def fill(engine: Engine) -> None:
        publish(engine, TABLE, [MONDAY], *of_day(MONDAY))
        apply(engine, BUCKETED)
        publish(engine, BUCKETED, [TUESDAY, WEDNESDAY], *of_days(TUESDAY, WEDNESDAY))

    return filled_engine(fill)


@pytest.fixture
def in_both_specs(filled_engine: Callable[..., Engine]) -> Engine:
    """Monday by day alone, Tuesday by customer too, and Wednesday in files of both."""

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
    """The partition specs of each day's files."""
    found: dict[str, set[int]] = {}
    for file in files(engine, TABLE.name):
        found.setdefault(str(file.partition["transaction_date_day"]), set()).add(file.spec_id)
    return found


def planned_files(engine: Engine, where: str) -> set[str]:
    """The files that PyIceberg would read; it takes a date as text."""
    tasks = (
        engine.catalog.load(TABLE.name).scan(row_filter=where.replace("DATE", "")).plan_files()
    )
    return {task.file.file_path for task in tasks}


def scanned_files(frame: DataFrame) -> int:
    """How many files Spark's scan has read, by its own metric."""
    frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    return leaves.head().metrics().apply("resultDataFiles").value()


def test_old_files_stay_and_new_files_follow_the_new_spec(engine: Engine) -> None:
    publish(engine, TABLE, [MONDAY], *of_day(MONDAY))
    before = data_files(engine, TABLE.name)
    apply(engine, BUCKETED)
    assert data_files(engine, TABLE.name) == before
    publish(engine, BUCKETED, [TUESDAY], *of_day(TUESDAY))

    found = files(engine, TABLE.name)
    assert {file.path for file in found if file.spec_id == 0} == before
    buckets = {file.partition["customer_id_bucket_10"] for file in found if file.spec_id == 1}
    assert buckets <= set(range(10))
    assert len(buckets) > 5
    assert specs(engine) == {str(MONDAY): {0}, str(TUESDAY): {1}}


def test_the_same_query_gives_the_same_rows_under_either_spec(evolved: Engine) -> None:
    always_by_day = replace(TABLE, name="silver.always_by_day", quarantine_name=None)
    publish(
        evolved,
        always_by_day,
        [MONDAY, TUESDAY, WEDNESDAY],
        *of_days(MONDAY, TUESDAY, WEDNESDAY),
    )

    name, other = (evolved.catalog.sql_name(table.name) for table in (TABLE, always_by_day))
    for question, where in QUESTIONS.items():
        rows = evolved.sql(
            f"SELECT * FROM {name} WHERE {where} ORDER BY transaction_id"
        ).collect()
        assert (
            rows
            == evolved.sql(
                f"SELECT * FROM {other} WHERE {where} ORDER BY transaction_id"
            ).collect()
        ), question
        assert rows, question


def test_only_the_files_that_a_query_needs_are_read(evolved: Engine) -> None:
    found = {
        file.path: str(file.partition["transaction_date_day"])
        for file in files(evolved, TABLE.name)
    }
    # A file by day alone may hold any customer; one by customer too holds those of its bucket.
    customers = {path for path, day in found.items() if day == str(MONDAY)} | holding(
        evolved, "customer_id = 7"
    )
    expected = {
        "a day": {path for path, day in found.items() if day == str(TUESDAY)},
        "a customer": customers,
        "a customer's day": {path for path in customers if found[path] == str(TUESDAY)},
        "a range of days": {path for path, day in found.items() if day >= str(TUESDAY)},
    }

    name = evolved.catalog.sql_name(TABLE.name)
    for question, where in QUESTIONS.items():
        needed = expected[question]
        assert 0 < len(needed) < len(found), question
        assert planned_files(evolved, where) == needed, question
        assert scanned_files(evolved.sql(f"SELECT * FROM {name} WHERE {where}")) == len(
            needed
        ), question


def holding(engine: Engine, where: str) -> set[str]:
    """The files that hold rows like these."""
    found = engine.sql(
        f"SELECT DISTINCT _file FROM {engine.catalog.sql_name(TABLE.name)} WHERE {where}"
    ).collect()
    return {row[0] for row in found}


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


def test_a_day_of_both_specs_is_emptied(evolved: Engine) -> None:
    name = evolved.catalog.sql_name(TABLE.name)
    evolved.sql(
        f"INSERT INTO {name} SELECT * FROM {name} WHERE transaction_date = DATE'{MONDAY}'"
    )
    publish(evolved, BUCKETED, [MONDAY])
    assert set(specs(evolved)) == {str(TUESDAY), str(WEDNESDAY)}


def test_the_days_that_changed_are_told_from_the_files_of_either_spec(evolved: Engine) -> None:
    def changed(since: int | None) -> set:
        history = read_history(evolved, TABLE.name)
        table = evolved.catalog.load(TABLE.name)
        return changed_values(
            table, history, since, history.main.snapshot_id, "transaction_date"
        )

    before = snapshot_id(evolved, TABLE.name)
    assert changed(None) == {MONDAY, TUESDAY, WEDNESDAY}
    publish(evolved, BUCKETED, [MONDAY], *of_day(MONDAY, amount="77.00"))
    assert changed(before) == {MONDAY}


def test_sums_by_day_owe_the_days_that_changed_under_either_spec(
    embedded_engine: Engine,
) -> None:
    def stale() -> set:
        return stale_values(embedded_engine, SUMS, BY_DAY)

    publish(embedded_engine, TABLE, [MONDAY], *of_day(MONDAY))
    add_up(embedded_engine, MONDAY)
    assert stale() == set()
    apply(embedded_engine, BUCKETED)
    assert stale() == set()
    publish(embedded_engine, BUCKETED, [TUESDAY], *of_day(TUESDAY))
    assert stale() == {TUESDAY}
    add_up(embedded_engine, TUESDAY)
    publish(embedded_engine, BUCKETED, [MONDAY], *of_day(MONDAY, amount="77.00"))
    assert stale() == {MONDAY}
    add_up(embedded_engine, MONDAY)
    assert stale() == set()
    assert content(
        embedded_engine, SUMS.name, "transaction_date", "CAST(amount AS string)"
    ) == [
        (MONDAY, "1540.00"),
        (TUESDAY, "200.00"),
    ]


def add_up(engine: Engine, day: date) -> None:
    """Compute the sums of a day."""

    def compute(transactions: DataFrame) -> DataFrame:
        sums = transactions.groupBy("transaction_date").agg({"amount": "sum"})
        return sums.selectExpr(
            "transaction_date", "CAST(`sum(amount)` AS decimal(20,2)) AS amount"
        )

    write(engine, SUMS, compute, BY_DAY, run_of(day))


@pytest.mark.parametrize("row_level", ["copy-on-write", "merge-on-read"])
def test_a_day_is_overwritten_in_files_of_a_month(
    embedded_engine: Engine, row_level: str
) -> None:
    daily = replace(TABLE, row_level=row_level)
    monthly = replace(daily, partitioning=["months(transaction_date)"])
    publish(embedded_engine, monthly, [MONDAY, TUESDAY], *of_days(MONDAY, TUESDAY))
    apply(embedded_engine, daily)
    publish(embedded_engine, daily, [TUESDAY], *of_day(TUESDAY, amount="77.00"))
    found = content(embedded_engine, TABLE.name, "transaction_date", "CAST(amount AS string)")
    assert found == [(MONDAY, "10.00")] * len(CUSTOMERS) + [(TUESDAY, "77.00")] * len(CUSTOMERS)


def test_the_column_that_days_are_told_by_is_renamed(embedded_engine: Engine) -> None:
    publish(embedded_engine, TABLE, [MONDAY, TUESDAY], *of_days(MONDAY, TUESDAY))
    before = read_history(embedded_engine, TABLE.name).main.snapshot_id
    by_new_name = {
        "partitioning": ["days(booked_on)"],
        "write": OverwritePartitions(by="booked_on"),
    }
    after = renamed(TABLE, "transaction_date", "booked_on", **by_new_name)
    for table in (after, after.quarantine):
        apply(embedded_engine, table)
    rows = [
        {**row, "booked_on": row["transaction_date"]} for row in of_day(TUESDAY, amount="77.00")
    ]
    publish(embedded_engine, after, [TUESDAY], *rows)

    history, table = (
        read_history(embedded_engine, TABLE.name),
        embedded_engine.catalog.load(TABLE.name),
    )
    assert changed_values(table, history, before, history.main.snapshot_id, "booked_on") == {
        TUESDAY
    }
    found = content(embedded_engine, TABLE.name, "booked_on", "CAST(amount AS string)")
    assert found == [(MONDAY, "10.00")] * len(CUSTOMERS) + [(TUESDAY, "77.00")] * len(CUSTOMERS)


def test_customers_of_changed_days_are_told_across_a_rename(embedded_engine: Engine) -> None:
    after = renamed(TABLE, "customer_id", "client_id", subject="client_id")
    publish(embedded_engine, TABLE, [MONDAY], *of_day(MONDAY))
    assert counted(embedded_engine, "customer_id") == [*CUSTOMERS]
    for table in (after, after.quarantine, counts("client_id")):
        apply(embedded_engine, table)
    publish(embedded_engine, after, [MONDAY], transaction(1, MONDAY, client_id="50"))
    assert counted(embedded_engine, "client_id") == [*CUSTOMERS, 50]


def counts(key: str) -> IcebergTable:
    """A table of one row for each customer, under some name."""
    column = Column(key, "bigint", renamed_from="customer_id")
    return IcebergTable("gold.customers", "Who ever bought.", [column], Merge(on=key))


def counted(engine: Engine, key: str) -> list[int]:
    """Compute that table, and return the customers that had to be looked at."""
    seen: list[int] = []

    def compute(customers: DataFrame) -> DataFrame:
        seen.extend(sorted(row[0] for row in customers.collect()))
        return customers

    changed = changed_keys(TABLE.name, of=key, by="transaction_date")
    write(engine, counts(key), compute, {"customers": changed})
    return seen


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


def test_a_spec_waits_for_apply_and_stops_no_write(embedded_engine: Engine) -> None:
    publish(embedded_engine, TABLE, [MONDAY], *of_day(MONDAY))
    publish(embedded_engine, BUCKETED, [TUESDAY], *of_day(TUESDAY))
    assert {file.spec_id for file in files(embedded_engine, TABLE.name)} == {0}
    (waiting,) = ensure(embedded_engine, BUCKETED).waiting
    assert waiting.description == "partition also by bucket(10, customer_id)"
