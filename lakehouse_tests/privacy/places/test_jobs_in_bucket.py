"""What a killed run of a job left in a bucket that keeps versions goes for good."""

from datetime import timedelta

import pytest

from lakehouse.ingestion.staging import staged_rows
from lakehouse.privacy.places.left_folders import remove_left_folders
from lakehouse.settings import Settings
from lakehouse.storage.s3 import S3ObjectStore, open_bucket
from lakehouse_tests.conftest import keep_versions

pytestmark = pytest.mark.unit

KEY = "jobs/runs/0123456789abcdef/context.json"


@pytest.fixture
def store(aws_settings: Settings) -> S3ObjectStore:
    """A bucket that keeps what was removed, with a request that was removed once."""
    store = open_bucket(aws_settings)
    keep_versions(store)
    store.write_text(KEY, "keys")
    store.client.delete_object(Bucket=store.bucket, Key=KEY)
    return store


def remove(settings: Settings, *, is_dry: bool = False) -> list[tuple[str, str, int]]:
    places = remove_left_folders(settings, is_dry=is_dry)
    return [(place.place, place.outcome, place.files) for place in places]


def test_what_is_a_day_old_goes_with_its_versions(aws_settings, store, monkeypatch):
    monkeypatch.setattr(staged_rows, "LEFT_AFTER", timedelta(seconds=-2))
    run = "jobs/runs/0123456789abcdef"

    assert remove(aws_settings, is_dry=True) == [(run, "removed", 2)]
    assert remove(aws_settings) == [(run, "removed", 2)]
    assert store.all_versions("") == []


def test_what_a_run_may_be_reading_is_left(aws_settings, store):
    ((_, outcome, files),) = remove(aws_settings)

    assert (outcome, files) == ("busy", 2)
    assert len(store.all_versions("jobs/")) == 2
