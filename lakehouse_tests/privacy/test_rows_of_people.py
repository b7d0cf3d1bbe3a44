"""By what rows are known to be somebody's, and when they were made; from the declarations."""

from dataclasses import replace

from lakehouse.iceberg.erasure.suppression_list import RowTimestamp
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.privacy.holders import find_subjects, row_moments, subject_names
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import Column, Merge, Versions
from lakehouse_tests.privacy.small_lakehouse import SOURCES, TABLES, declared

FEED = Feed(
    "visits",
    ["customer_id", "seen_at"],
    "bronze.visits",
    subject="customer_id",
    moment="seen_at",
    time_zone="Asia/Kuala_Lumpur",
)
VISITS = bronze_table(FEED, "Visits as delivered.")
COUNTED = declared("silver.counted", "customer_id", "seen_at", subject="customer_id")
SUMMED = declared("gold.summed", "customer_id", subject="customer_id")
VERSIONS = replace(
    COUNTED,
    name="silver.versions",
    columns=[*COUNTED.columns, Column("written_at", "timestamp")],
    write=Merge(on=["customer_id"]),
    versions=Versions("customer_id", "written_at"),
    rules=[castable("written_at", "timestamp", time_zone="Europe/Berlin"), not_null("seen_at")],
)


def test_a_table_knows_its_people_by_all_names_of_the_subject() -> None:
    names = subject_names(find_subjects(TABLES, SOURCES))

    assert names["gold.profiles"] == {"customer_id", "client"}
    assert names["bronze.raw_orders"] == {"customer_id", "client"}
    assert "gold.mails" not in names


def test_the_moment_is_of_versions_else_of_the_feed_else_inherited() -> None:
    tables = {one.name: one for one in (VISITS, COUNTED, SUMMED, VERSIONS)}
    sources = {
        COUNTED.name: {VISITS.name},
        SUMMED.name: {COUNTED.name},
        VERSIONS.name: {VISITS.name},
    }

    moments = row_moments(tables, [FEED], sources)

    quarantine = VERSIONS.quarantine
    assert moments == {
        VISITS.name: RowTimestamp("seen_at", "Asia/Kuala_Lumpur"),
        COUNTED.name: RowTimestamp("seen_at", "Asia/Kuala_Lumpur"),
        VERSIONS.name: RowTimestamp("written_at", "Europe/Berlin"),
        quarantine.name: RowTimestamp("written_at", "Europe/Berlin"),
    }
