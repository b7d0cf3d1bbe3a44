"""Keys that are different texts and equal once they are cast block the write: no row of them is
superseded.
"""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Partitions, Run
from lakehouse.iceberg.metadata.write_result import Published, Refused
from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import Column, IcebergTable, Merge, Versions, by_day
from lakehouse_tests.iceberg.declarations import content, rows_of

pytestmark = pytest.mark.spark
RAW = bronze_table(
    Feed("dial", ["code", "area", "day"], table="bronze.dial"),
    "",
    extra=[Column("_day", "date")],
    partitioning=["_day"],
)
COLUMNS = [Column("code", "bigint"), Column("area", "string"), Column("day", "date")]
NEWEST = Versions("code", ("_ingested_at", "_source_file", "_source_row"))
MERGE: dict[str, Any] = {"write": Merge(on=["code"])}
MERGED_FIRST: dict[str, Any] = {"write": Merge(on=["code"], within_file="first")}
MERGED_VERSIONS: dict[str, Any] = {**MERGE, "versions": NEWEST}
DAYS: dict[str, Any] = {"write": by_day("day", since="2024-01-01"), "versions": NEWEST}
DAY = date(2024, 1, 31)
RUN = Run("run", Partitions((str(DAY),), ((DAY, date(2024, 2, 1)),)))
each_form = pytest.mark.parametrize(
    "form",
    [MERGE, MERGED_FIRST, MERGED_VERSIONS, DAYS],
    ids=["merge", "first in its file", "versions", "days"],
)


def deliver(engine: Engine, file: str, *codes: str) -> None:
    schema = ", ".join(f"{column.name} {column.type}" for column in RAW.columns)
    at = datetime(2024, 2, int(file), tzinfo=UTC)
    rows = [
        (code, f"{code} {file}", "2024-01-31", DAY, file, f"sha {file}", at, row, at)
        for row, code in enumerate(codes, 1)
    ]
    write(engine, RAW, rows_of(engine, schema, rows))


def compute(engine: Engine, form: dict[str, Any]) -> Any:
    table = IcebergTable("silver.dial", "", COLUMNS, rows_of=RAW, **form)
    read = versions_of(RAW, by="_day") if form is DAYS else versions_of(RAW)
    run = RUN if form is DAYS else Run("run")
    return write(engine, table, lambda delivered: delivered, {"delivered": read}, run)


@each_form
def test_are_counted_and_shown_and_nothing_is_published(
    embedded_engine: Engine, form: dict[str, Any]
) -> None:
    deliver(embedded_engine, "1", "+49", "49", "+41", "41", "33")
    done = compute(embedded_engine, form)

    assert isinstance(done, Refused)
    reasons = {result.rule.name: result for result in done.reasons}
    broken = reasons["one_text_per_key"]
    assert broken.failed_rows == 2
    texts = {"49", "41"} if form is MERGED_FIRST else {"+49", "+41"}
    assert {row["code"] for row in broken.sample} == texts
    assert content(embedded_engine, "silver.dial") == []


@pytest.mark.long
def test_one_text_of_a_key_is_one_key(embedded_engine: Engine) -> None:
    deliver(embedded_engine, "1", "007", " 42", "42 ", "x")
    assert isinstance(compute(embedded_engine, MERGE), Published)
    deliver(embedded_engine, "2", "007", "007")
    done = compute(embedded_engine, MERGE)

    assert isinstance(done, Published)
    assert [result for result in done.results if result.failed_rows] == []
    merged = content(embedded_engine, "silver.dial", "code", "area")
    assert sorted(merged) == [(7, "007 2"), (42, "42  1")]
    assert content(embedded_engine, "silver.dial_quarantine", "code") == [("x",)]
