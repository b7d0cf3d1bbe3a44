"""A moment that a function hands on as a `timestamp` is the same one whatever time zone text is
read in.
"""

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.rows import between, castable
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Versions
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.declarations import content

pytestmark = [pytest.mark.spark, whatever_the_catalog]

ZONES = ["Europe/Berlin", "America/New_York"]


@pytest.mark.long
def test_its_day_is_one_of_the_time_zone(engine: Engine) -> None:
    days = IcebergTable(
        name="silver.days_of",
        comment="Days of moments.",
        columns=[Column("v", "int"), Column("day", "date")],
        write=Append(once_by=()),
        rules=[castable("day", "date", time_zone="Europe/Berlin"), between("v", 0, 10)],
    )

    def append(*rows: str) -> None:
        sql = f"SELECT * FROM VALUES {', '.join(rows)} AS t(v, day)"
        write(engine, days, lambda: engine.sql(sql))

    append("(1, TIMESTAMP'2024-01-05 23:30:00Z')", "(2, TIMESTAMP'2024-07-05 21:59:59.5Z')")
    append("(3, '2024-01-05 23:30:00')", "(4, '2024-01-05T23:30:00Z')", "(5, '2024-01-05')")
    append(
        "(6, TIMESTAMP_NTZ'2024-01-05 23:30:00')", "(99, TIMESTAMP_NTZ'2024-01-05 23:30:00')"
    )
    append("(98, TIMESTAMP'2024-01-05 23:30:00Z')", "(7, NULL)")
    assert content(engine, days.name, "v", "CAST(day AS string)") == [
        (1, "2024-01-06"),
        (2, "2024-07-05"),
        (3, "2024-01-05"),
        (4, "2024-01-06"),
        (5, "2024-01-05"),
        (6, "2024-01-05"),
        (7, None),
    ]
    assert content(engine, "silver.days_of_quarantine", "day") == [
        ("2024-01-05 23:30:00",),
        ("2024-01-05 23:30:00Z",),
    ]


@pytest.mark.long
@pytest.mark.parametrize("zone", repeated(ZONES, tried=[ZONES[1]]))
def test_a_rejected_version_stays_until_one_that_is_not_older(
    engine: Engine, zone: str
) -> None:
    """Those that the quarantine had before it kept offsets are read in the time zone."""
    table = IcebergTable(
        name="silver.versions",
        comment="The newest version of each.",
        columns=[Column("id", "int"), Column("v", "int"), Column("changed_at", "timestamp")],
        write=Merge(on=["id"]),
        versions=Versions(of="id", newest=["changed_at"]),
        rules=[castable("changed_at", "timestamp", time_zone=zone), between("v", 0, 10)],
    )

    def merge(v: int, at: str) -> int:
        """Merge a version, and return how many the quarantine has then."""
        sql = f"SELECT 1 AS id, {v} AS v, TIMESTAMP'2026-06-01 {at}Z' AS changed_at"
        write(engine, table, lambda: engine.sql(sql))
        return len(content(engine, "silver.versions_quarantine"))

    assert merge(99, "12:00:00") == 1
    assert merge(1, "11:59:59.9") == 1
    assert merge(2, "12:00:00") == 0
    assert merge(99, "13:00:00") == 1
    quarantine = engine.catalog.sql_name("silver.versions_quarantine")
    local = engine.sql(
        f"SELECT CAST(from_utc_timestamp(TIMESTAMP'2026-06-01 13:00:00Z', '{zone}') AS STRING)"
    ).first()[0]
    engine.sql(f"UPDATE {quarantine} SET changed_at = '{local}'")
    assert merge(3, "12:59:59") == 1
    assert merge(4, "13:00:00") == 0
