"""One input of versions: late, corrected and moved rows come to their place without a word in
the function.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read import stale_partitions, version_keys
from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.read.stale_partitions import quarantined_values, stale_values
from lakehouse.iceberg.rules.rows import between, castable, not_null
from lakehouse.iceberg.values.value_ranges import AllPartitions
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome, Unchanged
from lakehouse.iceberg.write import prepared_frame, row_versions
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    OverwritePartitions,
    Versions,
)
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import (
    MONDAY,
    SOURCE,
    TUESDAY,
    WEDNESDAY,
    content,
    rows_of,
    schema_of,
)

pytestmark = [pytest.mark.spark, whatever_the_catalog]

RAW = IcebergTable(
    name="bronze.visits",
    comment="Visits as they were delivered.",
    columns=[
        Column("visit", "string"),
        Column("pages", "string"),
        Column("written", "int"),
        Column("day", "date"),
        *SOURCE,
        Column("_source_modified_at", "timestamp"),
        Column("_ingested_at", "timestamp"),
    ],
    partitioning=["days(day)"],
    write=Append(),
)
VISITS = IcebergTable(
    name="silver.visits",
    comment="One row for each visit, as written last.",
    columns=[
        Column("visit", "string"),
        Column("pages", "int"),
        Column("written", "int"),
        Column("day", "date"),
        *SOURCE,
    ],
    partitioning=["days(day)"],
    write=OverwritePartitions(by="day"),
    versions=Versions("visit", ["written", "_source_file", "_source_row"]),
    rules=[castable("pages", "int"), not_null("pages"), not_null("day")],
)
LATEST = IcebergTable(
    name="silver.latest_visits",
    comment="One row for each visit, of the last file.",
    columns=[Column("visit", "string"), Column("pages", "int")],
    write=Merge(on=["visit"]),
    rules=[castable("pages", "int")],
)
BY_DAY = {"delivered": versions_of(RAW.name, by="day")}
BY_FILE = {"delivered": versions_of(RAW.name)}
DAYS = (MONDAY, TUESDAY, WEDNESDAY)
EVERY = AllPartitions(((MONDAY, WEDNESDAY + timedelta(1)),))
Visit = tuple[str, str, int, date | None]


def as_given(delivered: DataFrame) -> DataFrame:
    """Return what was delivered: each row is one."""
    return delivered


def deliver(engine: Engine, file: str, *visits: Visit) -> None:
    """Bring a file that is as new as its name says."""
    rows = [(*visit, file, f"sha-{file}", at) for at, visit in enumerate(visits, 1)]
    moments = [
        f"timestamp'2024-02-0{file} 00:00:00' AS {column.name}" for column in RAW.columns[-2:]
    ]
    given = rows_of(engine, schema_of(RAW.columns[:-2]), rows)
    write(engine, RAW, lambda: given().selectExpr("*", *moments))


def compute(
    engine: Engine, *days: date, function: Callable[..., DataFrame] = as_given
) -> Outcome:
    merged_ranges = tuple((day, day + timedelta(1)) for day in days)
    run = Run(
        "run", Partitions(tuple(map(str, days)), merged_ranges, EVERY), full_recompute=False
    )
    return write(engine, VISITS, function, BY_DAY, run)


def visits(engine: Engine) -> list[tuple[Any, ...]]:
    return content(engine, VISITS.name, "visit", "pages", "day")


in_any_way = pytest.mark.parametrize(
    ("few", "partitions"),
    [(2_000, 10_000), *(pytest.param(0, most, marks=pytest.mark.long) for most in (10_000, 1))],
    ids=["by values", "by a join", "by a join within a range of partitions"],
)


@pytest.mark.scenario
@in_any_way
def test_a_version_that_comes_late_or_moves_is_found_wherever_the_others_are(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, few: int, partitions: int
) -> None:
    monkeypatch.setattr(version_keys, "_FEW_KEYS", few)
    monkeypatch.setattr(row_versions, "_MOST_PARTITIONS", partitions)
    deliver(engine, "1", ("a", "1", 1, MONDAY), ("b", "1", 5, MONDAY))
    compute(engine, MONDAY)
    deliver(engine, "2", ("a", "2", 2, WEDNESDAY), ("b", "2", 4, TUESDAY))
    assert stale_values(engine, VISITS, BY_DAY, EVERY) == {*DAYS}

    compute(engine, TUESDAY)
    assert visits(engine) == [("a", 1, MONDAY), ("b", 1, MONDAY)]
    compute(engine, *DAYS)

    assert visits(engine) == [("a", 2, WEDNESDAY), ("b", 1, MONDAY)]
    assert stale_values(engine, VISITS, BY_DAY, EVERY) == set()


def test_a_version_without_a_part_of_its_key_is_found_in_another_partition(
    engine: Engine,
) -> None:
    table = replace(VISITS, versions=Versions(["visit", "pages"], ["written"]))
    for file, day in (("1", MONDAY), ("2", TUESDAY)):
        deliver(engine, file, (None, "7", int(file), day), (file, "7", 1, day))
        assert stale_values(engine, table, BY_DAY, EVERY) == {MONDAY, day}
        compute(engine, MONDAY)


def test_existing_rows_stay_with_more_rules_than_a_number_has_bits_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_frame, "_BITS", 1)
    for file in "12":
        deliver(engine, file, (file, "1", 1, MONDAY))
        compute(engine, MONDAY)
    assert visits(engine) == [("1", 1, MONDAY), ("2", 1, MONDAY)]


def test_a_column_of_the_table_may_have_a_name_in_capitals(engine: Engine) -> None:
    deliver(engine, "1", ("a", "1", 1, MONDAY), ("b", "1", 1, MONDAY))
    compute(engine, MONDAY)
    with engine.catalog.load(VISITS.name).update_schema() as schema:
        schema.rename_column("visit", "VISIT")
    deliver(engine, "2", ("c", "1", 1, MONDAY))
    compute(engine, MONDAY)
    assert visits(engine) == [("a", 1, MONDAY), ("b", 1, MONDAY), ("c", 1, MONDAY)]


@pytest.mark.scenario
def test_where_too_many_values_hold_versions_of_what_came_all_partitions_are_stale(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    thursday = WEDNESDAY + timedelta(days=1)
    deliver(engine, "1", ("a", "1", 1, MONDAY), ("b", "1", 5, TUESDAY), ("c", "1", 5, thursday))
    compute(engine, MONDAY, TUESDAY, thursday)
    deliver(engine, "2", ("a", "2", 2, WEDNESDAY), ("b", "2", 4, WEDNESDAY))
    known = stale_values(engine, VISITS, BY_DAY, EVERY)
    assert known == {MONDAY, TUESDAY, WEDNESDAY}

    monkeypatch.setattr(stale_partitions, "_MOST_PARTITIONS", 1)
    stale_partitions._known_affected.clear()
    assert stale_values(engine, VISITS, BY_DAY, EVERY) == known | {thursday}


@pytest.mark.scenario
def test_versions_of_quarantined_rows_are_found_by_numbers(engine: Engine) -> None:
    table = replace(
        VISITS,
        columns=[Column("visit", "bigint"), *VISITS.columns[1:]],
        rules=[between("pages", 0, 9)],
    )

    def compute_day(pages: int, day: date) -> None:
        rows = [(visit, pages, 1, day, "a", "sha-a", visit) for visit in (9, 10)]
        run = Run("run", Partitions((str(day),), ((day, day + timedelta(1)),)))
        write(engine, table, rows_of(engine, schema_of(table.columns), rows), {}, run)

    compute_day(1, MONDAY)
    compute_day(99, TUESDAY)

    assert quarantined_values(engine, table, {}) == {MONDAY, TUESDAY}


@pytest.mark.scenario
def test_a_merge_without_versions_keeps_the_accepted_row_that_was_delivered_last(
    engine: Engine,
) -> None:
    deliver(engine, "2", ("a", "5", 0, MONDAY), ("a", "3", 0, MONDAY), ("a", "x", 0, MONDAY))
    deliver(engine, "1", ("a", "9", 9, MONDAY), ("b", "1", 0, MONDAY))
    deliver(engine, "3", ("b", "bad", 0, MONDAY))

    write(engine, LATEST, as_given, BY_FILE)

    assert content(engine, LATEST.name) == [("a", 3), ("b", 1)]
    held = content(engine, f"{LATEST.name}_quarantine", "visit", "_source_file")
    assert held == [("a", "2"), ("b", "3")]
    again = write(engine, LATEST, as_given, BY_FILE)
    assert isinstance(again, Unchanged)


def test_a_merge_keeps_one_of_the_rows_made_of_one_delivered_row(engine: Engine) -> None:
    deliver(engine, "1", ("a", "1", 0, MONDAY))

    def twice(delivered: DataFrame) -> DataFrame:
        return delivered.unionByName(delivered)

    write(engine, LATEST, twice, BY_FILE)

    assert content(engine, LATEST.name) == [("a", 1)]


def test_a_merge_may_keep_the_first_row_of_a_file(engine: Engine) -> None:
    deliver(engine, "1", ("a", "1", 0, MONDAY), ("a", "2", 0, MONDAY))
    deliver(engine, "2", ("a", "x", 0, MONDAY), ("a", "3", 0, MONDAY))
    deliver(engine, "3", ("b", "1", 0, MONDAY), ("b", "2", 0, MONDAY))
    first = replace(LATEST, write=Merge(on=["visit"], within_file="first"))

    write(engine, first, as_given, BY_FILE)

    assert content(engine, LATEST.name) == [("a", 3), ("b", 1)]


@pytest.mark.long
def test_of_a_merged_table_the_newest_version_may_delete(engine: Engine) -> None:
    table = replace(VISITS, partitioning=(), write=Merge(on="visit"))

    def deliver_and_merge(file: str, *visits: Visit) -> None:
        deliver(engine, file, *visits)
        write(engine, table, gone_without_pages, BY_FILE)

    def left() -> list[tuple[Any, ...]]:
        return content(engine, table.name, "visit", "pages")

    deliver_and_merge("1", ("a", "1", 2, MONDAY), ("b", "1", 2, MONDAY), ("c", "0", 3, MONDAY))
    assert left() == [("a", 1), ("b", 1)]

    deliver_and_merge("2", ("a", "0", 1, MONDAY), ("b", "0", 4, MONDAY), ("b", "2", 3, MONDAY))
    assert left() == [("a", 1)]

    deliver_and_merge("3", ("a", "0", 5, MONDAY))
    assert left() == []


def gone_without_pages(delivered: DataFrame) -> DataFrame:
    """Delete visits that have no page any more."""
    return delivered.selectExpr("*", "pages = '0' AS _deleted")
