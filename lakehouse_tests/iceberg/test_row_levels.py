"""A merged table tells its readers the same whether its rows are changed in whole files or by
delete files.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.partition_metadata import changed_values
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.rules.rows import excluded
from lakehouse.iceberg.values.write_result import Published, Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Merge, OverwritePartitions
from lakehouse_tests.conftest import whatever_the_catalog, with_format_3
from lakehouse_tests.iceberg.declarations import (
    MONDAY,
    TUESDAY,
    WEDNESDAY,
    content,
    put,
    refs,
    run_of,
    snapshot_id,
)

pytestmark = [
    pytest.mark.spark,
    whatever_the_catalog,
    pytest.mark.parametrize(
        ("row_level", "version"),
        [
            pytest.param("copy-on-write", 2, marks=pytest.mark.long),
            ("merge-on-read", 2),
            pytest.param("merge-on-read", 3, marks=[with_format_3, pytest.mark.long]),
        ],
    ),
]
VISITS = IcebergTable(
    name="silver.visits",
    comment="One row for each visit.",
    columns=[Column("visit", "string"), Column("pages", "int"), Column("day", "date")],
    partitioning=["days(day)"],
    write=Merge(on=["visit"]),
    rules=[excluded("visit", ["nobody"], on_failure="block")],
)
A_DAY = IcebergTable(
    name="gold.pages",
    comment="Pages of each day.",
    columns=[Column("day", "date"), Column("pages", "bigint")],
    partitioning=["days(day)"],
    write=OverwritePartitions(by="day"),
)
BY_DAY = {"visits": latest(VISITS.name, by="day")}
DAYS = (MONDAY, TUESDAY, WEDNESDAY)
ROWS = [(f"{day}-{number}", number, day, False) for day in DAYS for number in range(5)]
CHANGES = [(f"{TUESDAY}-1", 100, TUESDAY, False), (f"{WEDNESDAY}-2", 0, WEDNESDAY, True)]


@pytest.fixture
def merge(
    engine: Engine, row_level: str, version: int
) -> Callable[[list[tuple]], Published | Refused]:
    """Return what merges rows into the visits."""
    table = replace(VISITS, row_level=row_level, format_version=version)

    def merge(rows: list[tuple]) -> Published | Refused:
        schema = "visit string, pages int, day date, _deleted boolean"
        outcome = put(engine, table, rows, schema=schema)
        assert isinstance(outcome, Published | Refused)
        return outcome

    merge(ROWS)
    return merge


def add_up(visits: DataFrame) -> DataFrame:
    return visits.groupBy("day").agg({"pages": "sum"}).toDF("day", "pages")


def test_partitions_are_stale_whose_rows_changed(engine: Engine, merge) -> None:
    write(engine, A_DAY, add_up, BY_DAY, run_of(*DAYS))
    assert stale_values(engine, A_DAY, BY_DAY) == set()
    before = snapshot_id(engine, VISITS.name)
    merge(CHANGES)
    assert stale_values(engine, A_DAY, BY_DAY) == {TUESDAY, WEDNESDAY}
    history = read_history(engine, VISITS.name)
    table = engine.catalog.load(VISITS.name)
    now = snapshot_id(engine, VISITS.name)
    assert changed_values(table, history, before, now, "day") == {TUESDAY, WEDNESDAY}
    write(engine, A_DAY, add_up, BY_DAY, run_of(TUESDAY, WEDNESDAY))
    assert content(engine, A_DAY.name, "day", "pages") == [
        (MONDAY, 10),
        (TUESDAY, 109),
        (WEDNESDAY, 8),
    ]


def test_its_rows_are_counted_without_a_scan(engine: Engine, merge) -> None:
    published = merge(CHANGES)
    assert published.row_count == len(content(engine, VISITS.name, "visit")) == 14


@pytest.mark.long
def test_it_is_not_taken_for_empty_where_delete_files_outlive_their_data_files(
    engine: Engine, merge
) -> None:
    """Of version 2 they do, and are counted: 10 rows seem to be 9."""
    merge([(f"{WEDNESDAY}-0", 0, WEDNESDAY, True)])
    name = engine.catalog.sql_name(VISITS.name)
    engine.sql(f"DELETE FROM {name} WHERE day = DATE '{WEDNESDAY}'")
    engine.sql(f"DELETE FROM {name} WHERE visit > '{MONDAY}-0'")
    merge([(f"{MONDAY}-0", 7, MONDAY, False)])
    assert content(engine, VISITS.name, "visit", "pages") == [(f"{MONDAY}-0", 7)]


def test_a_blocked_merge_leaves_it_as_it_was(engine: Engine, merge) -> None:
    before = snapshot_id(engine, VISITS.name)
    refused = merge([*CHANGES, ("nobody", 1, MONDAY, False)])
    assert isinstance(refused, Refused)
    assert snapshot_id(engine, VISITS.name) == before
    assert len(content(engine, VISITS.name, "visit")) == 15
    assert refused.branch in refs(engine, VISITS.name)
    candidate = engine.catalog.sql_name(VISITS.name, branch=refused.branch)
    assert engine.sql(f"SELECT * FROM {candidate}").count() == 15
