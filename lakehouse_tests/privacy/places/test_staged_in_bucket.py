"""Rows that an ingest staged in the bucket, and files of runs of jobs: those of dead processes are
removed, and others are reported.
"""

from datetime import timedelta

import pytest

from lakehouse.ingestion.staging import staged_rows
from lakehouse.ingestion.staging.staged_rows import BucketStaging, open_staging
from lakehouse.privacy.places.left_folders import remove_left_folders
from lakehouse.settings import Settings
from lakehouse_tests.conftest import keep_versions
from lakehouse_tests.privacy.places.a_person import EMAIL

pytestmark = pytest.mark.unit

INGEST = "20261125T093853.974097Z/0.parquet"
ANOTHER = "staging/fruits/0123456789ab"
RUN = "jobs/runs/0123456789abcdef"


@pytest.fixture
def bucket(aws_settings) -> BucketStaging:
    """A bucket that keeps what was removed, with rows of this home that were removed once."""
    staging = open_staging(aws_settings)
    assert staging
    store = staging.store
    keep_versions(store)
    key = f"{staging.own_prefix('fruits')}{INGEST}"
    store.write_text(key, EMAIL)
    store.client.delete_object(Bucket=store.bucket, Key=key)
    return staging


def remove(settings: Settings, *, is_dry: bool = False) -> list[tuple[str, str, int]]:
    places = remove_left_folders(settings, is_dry=is_dry)
    return [(place.place, place.outcome, place.files) for place in places]


def test_what_a_dead_ingest_staged_goes_with_its_versions(aws_settings, bucket):
    own = bucket.own_prefix("fruits").rstrip("/")

    assert remove(aws_settings, is_dry=True) == [(own, "removed", 2)]
    assert remove(aws_settings) == [(own, "removed", 2)]
    assert remove(aws_settings) == []
    assert bucket.store.all_versions("") == []


def test_uploads_that_were_not_completed_go_too(aws_settings, bucket):
    remove(aws_settings)
    client, name, own = bucket.store.client, bucket.store.bucket, bucket.own_prefix("fruits")
    # The emulator says of each that it began in 2010.
    for key in (f"{own}{INGEST}", f"{ANOTHER}/{INGEST}"):
        client.create_multipart_upload(Bucket=name, Key=key)
    expected = [(own.rstrip("/"), "removed", 1), (ANOTHER, "removed", 1)]

    assert sorted(remove(aws_settings, is_dry=True)) == sorted(expected)
    assert len(client.list_multipart_uploads(Bucket=name)["Uploads"]) == 2
    assert sorted(remove(aws_settings)) == sorted(expected)
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name)


@pytest.mark.parametrize(("place", "name"), [(ANOTHER, INGEST), (RUN, "context.json")])
def test_objects_of_other_hosts_and_jobs_are_removed_when_a_day_old(
    aws_settings, bucket, monkeypatch, place, name
):
    remove(aws_settings)
    bucket.store.write_text(f"{place}/{name}", EMAIL)

    assert remove(aws_settings) == [(place, "busy", 1)]
    monkeypatch.setattr(staged_rows, "LEFT_AFTER", timedelta(seconds=-2))
    assert remove(aws_settings) == [(place, "removed", 1)]
    assert bucket.store.all_versions("") == []
