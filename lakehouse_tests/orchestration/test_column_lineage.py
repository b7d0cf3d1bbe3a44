"""Column lineage of a table whose rows are those of another table."""

import pytest

from lakehouse.iceberg.read.inputs import latest, versions_of
from lakehouse.orchestration.iceberg_asset import COLUMN_LINEAGE, lineage_metadata
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.table import Column, IcebergTable, Merge

pytestmark = pytest.mark.unit
FEED = Feed(
    name="visits",
    table="bronze.visits",
    columns=[FeedColumn("visit_id"), FeedColumn("day"), FeedColumn("note")],
)
RAW = bronze_table(FEED, "As delivered.")
VISITS = IcebergTable(
    name="silver.visits",
    comment="Visits.",
    rows_of=RAW,
    columns=[
        Column("visit_id", "bigint"),
        Column("visited_on", "date", renamed_from="day"),
        Column("note", "string", cast=False),
        Column("length", "int", "Of the note."),
        Column("changed_at", "timestamp", "When it was last written."),
    ],
    write=Merge(on="visit_id", stamp="changed_at"),
)


def test_columns_of_delivered_rows_have_their_source() -> None:
    metadata = lineage_metadata(VISITS, {"delivered": versions_of(RAW)})
    lineage = metadata[COLUMN_LINEAGE].deps_by_column
    assert {name: deps[0].column_name for name, deps in lineage.items()} == {
        "visit_id": "visit_id",
        "visited_on": "day",
    }


def test_a_table_of_other_rows_has_no_lineage() -> None:
    assert lineage_metadata(VISITS, {"other": latest("gold.names")}) == {}
    assert lineage_metadata(RAW, {"visits": latest(VISITS)}) == {}
