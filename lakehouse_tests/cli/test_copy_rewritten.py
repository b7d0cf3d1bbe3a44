"""`lakehouse copy` copies the ledger of rewritten files, so that none lands twice."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.ingestion.rewritten_files import Change, RewrittenFiles
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.conftest import on_aws, settings_at

FEED = Feed("sales", ["id"], "bronze.sales")
DELIVERED, REWRITTEN = "a" * 64, "b" * 64
AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=["home to home", "home to bucket", "bucket to home"])
def places(request, home, tmp_path, aws_settings, monkeypatch):
    """Where is copied from, with a table, and where to."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_settings.endpoint_url or "")
    bucket = on_aws(aws_settings)
    known = {"home": settings_at(home), "bucket": bucket, "other": settings_at(tmp_path / "to")}
    begin, _, end = request.param.partition(" to ")
    source, target = known[begin], known["bucket" if end == "bucket" else "other"]
    catalog = Catalog.of(source)
    catalog.client.create_namespace("bronze")
    catalog.client.create_table("bronze.sales", pa.schema([("id", pa.int64())]))
    return [source, target]


def test_a_rewritten_file_is_the_same_delivery_at_the_other_place(lakehouse, places):
    rewrite(places[0], DELIVERED, REWRITTEN, 2)

    ran = copy(lakehouse, places)

    assert f"privacy/rewritten/sales/{REWRITTEN}.json copied." in ran
    assert missing(places[1], REWRITTEN) == {2}


def copy(lakehouse: Lakehouse, places: list[Settings]) -> list[str]:
    names = [f"s3://{place.bucket}" if place.bucket else str(place.home) for place in places]
    ran = lakehouse("copy", *names)
    assert ran.code == 0, ran.err
    return ran.out


def rewrite(place: Settings, old_sha256: str, new_sha256: str, row: int) -> None:
    """Note that a file that was delivered as a.csv lost a row."""
    file = f"a.{DELIVERED[:12]}.csv"
    ledger = RewrittenFiles(open_store(place), FEED)
    known = ledger.find(f"{FEED.inbox}a.csv", old_sha256)
    ledger.record(known, Change(old_sha256, new_sha256, (row,), file, "R-1", AT, AT))


def missing(place: Settings, sha256: str) -> frozenset[int]:
    """Return which rows of the delivery of a.csv a content lacks; none of an unknown one."""
    known = RewrittenFiles(open_store(place), FEED).find(f"{FEED.inbox}a.csv", sha256)
    return known.missing
