"""Keys in files and snapshots of earlier versions, which a rename of a field must not change."""

import pytest

from lakehouse.iceberg.metadata.commit_record import CommitProperties

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
