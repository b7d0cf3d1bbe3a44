"""Invalid partitions are an error at load that names found and expected values."""

import dagster as dg
import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import changed_keys, existing_rows, incremental, latest
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.load_validation import check_columns, check_partitions
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, OverwritePartitions

pytestmark = pytest.mark.unit

DAILY = dg.DailyPartitionsDefinition("2024-01-01")
COLUMNS = [
    Column("d", "date"),
    Column("day", "string"),
    Column("at", "timestamp"),
    Column("v", "int"),
]
BY_DAY = IcebergTable(
    "gold.t", "t", COLUMNS, partitioning=["days(d)"], write=OverwritePartitions(by="d")
)
MERGED = IcebergTable("gold.t", "t", COLUMNS, write=Merge(on="v"))
RAW = IcebergTable(
    "bronze.raw",
    "t",
    COLUMNS,
    partitioning=["d", "day", "hours(at)"],
    write=Append(once_by=("v",)),
)


@pytest.mark.parametrize(
    ("table", "definition", "message"),
    [
        (
            BY_DAY,
            None,
            (
                r"gold\.t is written by OverwritePartitions\(by='d'\), and its asset has no"
                r" partitions_def"
            ),
        ),
        (
            MERGED,
            DAILY,
            (
                r"gold\.t has a partitions_def, and is written by Merge; expected"
                r" OverwritePartitions"
            ),
        ),
        (BY_DAY, dg.DynamicPartitionsDefinition(name="d"), r"gold\.t has dynamic partitions"),
        # All of its hours together are whole days, as those of any definition at midnight.
        (
            BY_DAY,
            dg.HourlyPartitionsDefinition("2024-01-01-00:00", end_date="2024-01-03-00:00"),
            "whole days",
        ),
        (
            BY_DAY,
            dg.StaticPartitionsDefinition(["north"]),
            "cannot be partitions of column d, which is date",
        ),
    ],
)
def test_partitions_of_the_asset_are_those_of_the_table(table, definition, message):
    with pytest.raises(DeclarationError, match=message):
        check_partitions(table, {}, definition)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"raw": latest(RAW.name)}, r"none of its inputs \(raw\) has by=…"),
        (
            {"raw": changed_keys(RAW.name, of="v", by="d")},
            r"none of its inputs \(raw\) has by=…",
        ),
        (
            {"raw": incremental(RAW.name, by="d"), "own": existing_rows(BY_DAY.name, by="day")},
            "input own reads existing_rows with by='day'; expected 'd'",
        ),
        (
            {"one": latest(RAW.name, by="d"), "two": latest(RAW.name, by="day")},
            r"input two has by='day', and another input reads bronze\.raw by 'd'; expected one",
        ),
    ],
)
def test_a_partitioned_asset_of_which_not_all_would_be_run_is_rejected(inputs, message):
    with pytest.raises(DeclarationError, match=message):
        check_partitions(BY_DAY, inputs, DAILY)


def test_an_asset_is_checked_where_it_is_declared():
    with pytest.raises(DeclarationError, match=r"gold\.t.* has no partitions_def"):

        @iceberg_asset(BY_DAY, inputs={"raw": latest(RAW.name, by="d")})
        def made(raw):
            return raw


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            latest(RAW.name, by="dd"),
            r"gold\.t: input raw has by='dd', and bronze\.raw has no such column; expected one",
        ),
        (
            changed_keys(RAW.name, of="vv", by="d"),
            "input raw has of='vv', and bronze.raw has no such column",
        ),
        (
            latest(RAW.name, by="v"),
            (
                r"by='v', and bronze\.raw is partitioned by d, day, hours\(at\); expected v or"
                r" days"
            ),
        ),
        (
            latest(RAW.name, by="day"),
            r"by='day', which is string in bronze\.raw, and the table is overwritten by d",
        ),
    ],
)
def test_a_column_that_cannot_tell_the_partitions_is_named(given, message):
    with pytest.raises(DeclarationError, match=message):
        check_columns(BY_DAY, BY_DAY.name, "raw", given, RAW)


def test_a_column_that_tells_them_is_taken():
    check_columns(BY_DAY, BY_DAY.name, "raw", latest(RAW.name, by="d"), RAW)
    check_partitions(
        BY_DAY, {"raw": latest(RAW.name, by="d"), "names": latest("silver.names")}, DAILY
    )
    check_partitions(BY_DAY, {}, DAILY)
