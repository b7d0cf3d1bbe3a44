"""`lakehouse ingest` of feeds whose tables need each other's, in a project of its own."""

from pathlib import Path

import pytest

from lakehouse_tests.cli.projects import project_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
BRONZE = '''\
"""`bronze.{feed}`."""

from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table

FEED = Feed(
    name="{feed}",
    table="bronze.{feed}",
    columns=[FeedColumn("id", "Number."), FeedColumn("name", "Name.")],
)
TABLE = bronze_table(FEED, "As delivered.")


@feed_asset(FEED, TABLE)
def {feed}(delivered):
    """As delivered."""
    return delivered
'''
SILVER = '''\
"""`silver.{feed}`."""

from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.unique_and_references import references
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Merge

from shop.assets.bronze.{feed} import TABLE as RAW

TABLE = IcebergTable(
    "silver.{feed}",
    "One row for each number.",
    [Column("id", "bigint", "Number."), Column("name", "string", "Name.")],
    rows_of=RAW,
    write=Merge(on=["id"]),
    rules=[{rules}],
)


@iceberg_asset(TABLE, inputs={{"raw": incremental(RAW)}})
def {feed}(raw):
    """One row for each number."""
    return raw
'''
REFERENCE = 'references("name", "silver.people", "name", on_failure="warn")'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home that the project finds by itself."""
    return tmp_path / "shop" / ".lakehouse"


@pytest.fixture
def shop(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    """Orders refer to people, whose feed comes later in the alphabet."""
    with project_at(tmp_path / "shop", monkeypatch) as root:
        for feed, rules in (("orders", REFERENCE), ("people", "")):
            for layer, text in (("bronze", BRONZE), ("silver", SILVER)):
                file = root / "shop" / "assets" / layer / f"{feed}.py"
                file.write_text(text.format(feed=feed, rules=rules))
            inbox = home / "inbox" / feed
            inbox.mkdir(parents=True)
            (inbox / "1.csv").write_text("id,name\n1,Ann\n2,Bob\n")
        yield root


@pytest.mark.long
def test_what_needs_a_table_of_a_later_feed_is_computed_at_the_end(shop, lakehouse):
    ran = lakehouse("ingest")
    assert (ran.code, ran.err) == (0, [])
    said = [line for line in ran.out if line.startswith(("Feed", "silver"))]
    assert said == [
        "Feed people: 1 file (1.csv), nr_rows 2",
        "silver.people: 2 inserted, 0 updated, 2 rows in all",
        "Feed orders: 1 file (1.csv), nr_rows 2",
        "Feed orders: no new file in inbox/orders/",
        "silver.orders: 2 inserted, 0 updated, 2 rows in all",
    ]


def test_what_needs_a_table_that_no_feed_brings_is_an_error(shop, lakehouse, home):
    (home / "inbox" / "people" / "1.csv").unlink()
    ran = lakehouse("ingest")
    assert ran.code == 1
    (said,) = ran.err
    assert said.startswith("lakehouse: There is no table silver.people in the catalog.")
