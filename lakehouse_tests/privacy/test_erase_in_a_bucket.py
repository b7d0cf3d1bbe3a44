"""A person is erased from tables in a bucket: from what it keeps of removed files too."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.metadata.table_locations import path_key
from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.privacy.erasure_steps import remove_unseen
from lakehouse.settings import Settings
from lakehouse.storage.s3 import S3ObjectStore, open_bucket
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.conftest import keep_versions
from lakehouse_tests.privacy.an_erasure import ANNA, HERS, NAMED, Home, expire_without_spark
from lakehouse_tests.privacy.small_lakehouse import ORDERS, People

pytestmark = [pytest.mark.unit, pytest.mark.long]

BEN = (8001234567, "ben@example.org", 2.0)


@pytest.fixture
def orders() -> IcebergTable:
    return ORDERS


@pytest.fixture
def in_a_bucket(
    aws_settings: Settings, orders: IcebergTable, monkeypatch: pytest.MonkeyPatch
) -> Home:
    """A bucket that keeps versions, and tables in it of which one has Anna."""
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_settings.endpoint_url or "")
    aws_settings.home.mkdir()
    keep_versions(open_bucket(aws_settings))
    home = Home(aws_settings, {ORDERS.name: orders})
    people = People(home.engine, home.erasable.subjects)
    people.add(orders, (int(HERS), ANNA, 1.0), BEN)
    return home


def test_what_it_keeps_of_removed_files_of_tables_goes_too(in_a_bucket: Home) -> None:
    store = open_bucket(in_a_bucket.settings)

    erasure = in_a_bucket.erase(*NAMED, now=True)

    assert erasure.request.state == "verified", (
        erasure.search_report and erasure.search_report.as_text()
    )
    assert in_a_bucket.rows(ORDERS) == [BEN]
    table = in_a_bucket.engine.catalog.load(ORDERS.name)
    prefix = path_key(table.location()).removeprefix("lake/")
    assert store.versions_of_removed(prefix) == []
    (place,) = [one for one in erasure.record.places if one.place == table.location()]
    assert (place.outcome, place.files > 0) == ("removed", True)


@pytest.mark.parametrize(
    "orders", [replace(ORDERS, properties={"write.data.path": "s3://lake/data/of_orders"})]
)
def test_so_does_that_of_files_elsewhere_in_the_bucket(in_a_bucket: Home) -> None:
    erasure = in_a_bucket.erase(*NAMED, now=True)

    assert erasure.request.state == "verified", (
        erasure.search_report and erasure.search_report.as_text()
    )
    assert open_bucket(in_a_bucket.settings).versions_of_removed("data/") == []


def test_uploads_of_a_write_that_was_killed_are_no_gap_for_ever(in_a_bucket: Home) -> None:
    """The emulator says of each that it began in 2010."""
    store = open_bucket(in_a_bucket.settings)
    location = in_a_bucket.engine.catalog.load(ORDERS.name).location()
    key = f"{location.removeprefix('s3://lake/')}/data/killed.parquet"
    store.client.create_multipart_upload(Bucket=store.bucket, Key=key)

    erasure = in_a_bucket.erase(*NAMED)

    assert erasure.request.state == "verified", (
        erasure.search_report and erasure.search_report.as_text()
    )
    assert store.uploads("") == []


def versions(store: S3ObjectStore, key: str) -> list[int]:
    return [version.size_bytes for version in store.all_versions(key)]


def test_the_version_of_a_file_that_a_table_names_stays(in_a_bucket: Home) -> None:
    """It was removed by mistake, and can be brought back."""
    people = People(in_a_bucket.engine, in_a_bucket.erasable.subjects)
    people.add(ORDERS, (9001234567, "cleo@example.org", 3.0))
    tasks = in_a_bucket.engine.catalog.load(ORDERS.name).scan().plan_files()
    (path,) = [one.file.file_path for one in tasks if one.file.record_count == 1]
    store, key = open_bucket(in_a_bucket.settings), path.removeprefix("s3://lake/")
    store.client.delete_object(Bucket=store.bucket, Key=key)
    before = versions(store, key)
    assert len(before) == 2

    location = in_a_bucket.engine.catalog.load(ORDERS.name).location()
    removed = [*remove_unseen(in_a_bucket.erasable, {ORDERS.name: [location]})]

    assert removed == []
    assert versions(store, key) == before
