"""Keys in files and snapshots of earlier versions, which a rename of a field must not change."""

import json

import pytest

from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.privacy.erasure_record import read_record, write_record
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


def test_the_record_of_an_erasure_keeps_its_keys(settings: Settings) -> None:
    stored = {"anew": ["gold.a"], "seen_to": ["the bucket b"], "waiting": ["silver.a: in use"]}
    folder = settings.home / "privacy" / "records"
    folder.mkdir(parents=True)
    file = folder / "R-1.json"
    file.write_text(json.dumps(stored), encoding="utf-8")

    write_record(settings, "R-1", read_record(settings, "R-1"))

    assert json.loads(file.read_text(encoding="utf-8")).items() >= stored.items()
