"""Rows of another table are typed by their columns alone, whatever the table is written by."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import dagster as dg
import pytest

from lakehouse.errors import FrameMismatch
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import incremental, latest, versions_of
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    Versions,
    by_day,
)
from lakehouse_tests.iceberg.declarations import content, put

pytestmark = pytest.mark.spark

FEED = Feed("visits", ["id", "day", "at"], table="bronze.visits", time_zone="Asia/Kuala_Lumpur")
RAW = bronze_table(
    FEED, "Visits as delivered.", extra=[Column("_day", "date")], partitioning=["_day"]
)
COLUMNS = [Column("id", "int"), Column("day", "date"), Column("at", "timestamp")]
DAY = date(2024, 1, 31)
RUN = Run("run", Partitions((str(DAY),), ((DAY, DAY + timedelta(1)),)))
GIVEN = [("1", "2024-01-31", "2024-01-31 07:00:00"), ("two", "2024-01-31", None)]


@pytest.fixture
def delivered(filled_engine: Callable[..., Engine]) -> Engine:
    """Two visits, of which one has an id that is no number."""
    moment = datetime(2024, 2, 1, tzinfo=UTC)
    rows = [(*row, DAY, "a.csv", "sha", moment, at, moment) for at, row in enumerate(GIVEN, 1)]
    return filled_engine(lambda engine: put(engine, RAW, rows))


@pytest.mark.parametrize(
    ("mode", "read", "declaration"),
    [
        (Append(), incremental(RAW), {}),
        (Merge("id"), versions_of(RAW), {}),
        (Overwrite(), latest(RAW), {}),
        (
            by_day("day", since="2024-01-01"),
            versions_of(RAW, by="_day"),
            {"versions": Versions("id", ("at", "_source_file", "_source_row"))},
        ),
    ],
    ids=["append", "merge", "overwrite", "by day"],
)
def test_text_that_cannot_be_read_is_rejected_with_its_reason(
    delivered: Engine, mode, read, declaration
) -> None:
    table = IcebergTable("silver.visits", "v", COLUMNS, mode, rows_of=RAW, **declaration)

    done = write(
        delivered,
        table,
        lambda rows: rows,
        {"rows": read},
        RUN if table.overwritten_by else Run("run"),
    )

    assert isinstance(done, Published)
    # Seven in the morning in Kuala Lumpur.
    assert content(delivered, table.name, "id", "day", "CAST(at AS string)") == [
        (1, DAY, "2024-01-30 23:00:00")
    ]
    assert content(delivered, table.quarantine.name, "id", "_reasons") == [
        ("two", ["castable_id"])
    ]
    (result,) = (found for found in done.results if found.rule.name == "castable_id")
    assert result.rule.description == "id can be read as int"
    assert (result.failed_rows, [row["id"] for row in result.sample]) == (1, ["two"])


def test_a_number_that_is_no_text_is_not_cut_to_the_type(delivered: Engine) -> None:
    table = IcebergTable("silver.visits", "v", COLUMNS[:1], Overwrite(), rows_of=RAW)

    with pytest.raises(FrameMismatch, match=r"column id is double in the frame; expected int"):
        put(delivered, table, [(1.5,)], schema="id double")


def test_what_a_plain_asset_returns_is_read_by_the_types_of_its_table(
    delivered: Engine,
) -> None:
    table = IcebergTable("silver.visits", "v", COLUMNS, Overwrite(), rows_of=RAW)

    @dg.asset(key=["silver", "visits"], io_manager_key="io_manager")
    def visits():
        return delivered.spark.table(delivered.catalog.sql_name(RAW.name)).select(
            "id", "day", "at"
        )

    resources = {"io_manager": IcebergIOManager(engine=delivered, declared={table.name: table})}
    assert dg.materialize([visits], resources=resources).success

    assert content(delivered, table.name, "id", "day") == [(1, DAY)]
    assert content(delivered, table.quarantine.name, "id", "_reasons") == [
        ("two", ["castable_id"])
    ]
