"""`by_hour`, `by_day` and `by_month`: what follows from one word, and what is refused at import."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.tables.table import (
    Column,
    IcebergTable,
    Overwrite,
    OverwritePartitions,
    by_day,
    by_hour,
    by_month,
)

pytestmark = pytest.mark.unit

COLUMNS = [
    Column("d", "date"),
    Column("at", "timestamp"),
    Column("text", "string"),
    Column("shop", "string"),
]


def table(write, **declaration):
    return IcebergTable("gold.t", "t", COLUMNS, write, **declaration)


@pytest.mark.parametrize(
    ("write", "partitioning"),
    [
        (by_day("d", since="2024-01-31"), ("days(d)",)),
        (by_day("at", since="2024-01-31"), ("days(at)",)),
        (by_month("d", since="2024-01-31"), ("months(d)",)),
        (by_hour("at", since="2024-01-31"), ("hours(at)",)),
        (by_day("text", since="2024-01-31"), ("text",)),
    ],
)
def test_a_table_is_partitioned_by_what_it_is_written_by(write, partitioning):
    assert table(write).partitioning == partitioning


@pytest.mark.parametrize(
    ("given", "partitioning"),
    [
        (["shop"], ("days(d)", "shop")),
        (["shop", "months(d)"], ("shop", "months(d)")),
        (["d"], ("d",)),
    ],
)
def test_what_partitioning_says_beside_it_stays(given, partitioning):
    declared = table(by_day("d", since="2024-01-31"), partitioning=given)

    assert declared.partitioning == partitioning
    assert replace(declared, comment="another").partitioning == partitioning


def test_no_row_is_computed_anew_because_a_table_says_it_in_one_word():
    before = table(OverwritePartitions(by="d"), partitioning=["days(d)"])

    assert table(by_day("d", since="2024-01-31")).declaration_hash == before.declaration_hash


@pytest.mark.parametrize(
    ("write", "begin"),
    [
        (by_month("d", since="2024-01-31"), datetime(2024, 1, 1)),
        (by_day("d", since=date(2024, 1, 31)), datetime(2024, 1, 31)),
        (by_day("d", since=datetime(2024, 1, 31, 8)), datetime(2024, 1, 31)),
        (by_hour("at", since="2024-01-31T08:30"), datetime(2024, 1, 31, 8)),
    ],
)
def test_the_first_window_is_the_one_that_since_lies_in(write, begin):
    assert write.windows.since == begin


def test_a_table_may_have_the_windows_of_another():
    daily = table(by_day("d", since="2024-01-31", time_zone="Asia/Kuala_Lumpur"))
    monthly = by_month("d", like=daily).windows

    assert by_day("at", like=daily).windows == daily.windows
    assert (monthly.since, monthly.time_zone) == (datetime(2024, 1, 1), "Asia/Kuala_Lumpur")


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (
            lambda: by_day("d"),
            r"by_day\('d'\) has since=None and like=None; expected a first day",
        ),
        (
            lambda: by_month("d", since="soon"),
            r"by_month\('d'\): since is 'soon'; expected a day",
        ),
        (
            lambda: by_hour("at", since=datetime(2024, 1, 31, tzinfo=UTC)),
            r"expected a day such as 2024-01-31, or a wall time without an offset",
        ),
        (
            lambda: by_day("d", since="2024-01-31", time_zone="Mars/Olympus"),
            r"by_day\('d'\): time_zone is 'Mars/Olympus'; expected a name such as UTC",
        ),
        (
            lambda: by_day("d", since="2024-01-31", like=table(Overwrite())),
            r"by_day\('d'\) has since='2024-01-31' and like=gold\.t; expected",
        ),
        (
            lambda: by_day("d", like=table(Overwrite())),
            r"by_day\('d'\) has since=None and like=gold\.t; expected",
        ),
        (
            lambda: table(by_day("dd", since="2024-01-31")),
            r"gold\.t: OverwritePartitions\(by=…\) names dd; expected columns among d, at",
        ),
    ],
)
def test_what_cannot_be_windows_is_named(declare, said):
    with pytest.raises(DeclarationError, match=said):
        declare()
