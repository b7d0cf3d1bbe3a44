"""Keys in files and snapshots of earlier versions, which a rename of a field must not change."""

import json

import pytest

from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.privacy.erasure_record import read_record
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit


def test_snapshot_properties_keep_their_keys() -> None:
    stored = {
        "lakehouse.kind": "write",
        "lakehouse.write-id": "0123",
        "lakehouse.spans": '[["2026-01-01", "2026-02-01"]]',
        "lakehouse.takes-out": "true",
        "lakehouse.left-out": '{"bronze.a": ["x", null]}',
    }
    commit = CommitProperties.from_summary(stored)
    assert commit is not None
    assert commit.to_summary().items() >= stored.items()


def test_a_record_of_an_erasure_by_an_earlier_version_is_read(settings: Settings) -> None:
    stored = {"places": [{"place": "short values", "outcome": "kept", "owner": "x"}]}
    folder = settings.home / "privacy" / "records"
    folder.mkdir(parents=True)
    (folder / "R-1.json").write_text(json.dumps({**stored, "anew": ["gold.a"]}))

    (place,) = read_record(settings, "R-1").places
    assert place.is_done
