"""Records are read back from Dagster's metadata, also of the version before."""

import dagster as dg
import pytest

from lakehouse.orchestration.metadata_keys import (
    BlockedMetadata,
    CheckMetadata,
    DeclaredMetadata,
    LandedFile,
    LandingMetadata,
    OverrideMetadata,
    QuarantineMetadata,
    RejectedReason,
    WriteMetadata,
)

pytestmark = pytest.mark.unit

_BIG = 9_007_199_254_740_993
RECORDS = [
    DeclaredMetadata(
        column_schema=dg.TableSchema([dg.TableColumn("id", "bigint")]), write_mode="Merge"
    ),
    WriteMetadata(
        row_count=0,
        snapshot_id=_BIG,
        nr_rows=3,
        operation="append",
        inputs={"bronze.raw": {"rows": 3}},
        partitions=("2026-11-01", "2026-11-02"),
    ),
    QuarantineMetadata(rows=2, new_rows=0, table="silver.q", by_rule={"positive": 2}),
    BlockedMetadata(branch="", failed_rules="positive"),
    OverrideMetadata(by="ann", why="it is right", run_id="r1"),
    LandingMetadata(
        files=1,
        landed=(LandedFile("a.csv", 3, "ab"),),
        rejected=(RejectedReason("b.csv", "It has no header.", "rejected/b.csv"),),
        warnings=("A new column.",),
        suppressed_rows=2,
    ),
    CheckMetadata(
        failed_rows=1, total_rows=4, threshold=0.0, evaluated="candidate", snapshot_id=_BIG
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_is_read_back_from_what_dagster_keeps(record):
    kept = dg.AssetMaterialization("t", metadata=record.to_metadata()).metadata
    stored = dg.deserialize_value(
        dg.serialize_value(dg.AssetMaterialization("t", metadata=kept))
    )
    assert type(record).from_metadata(stored.metadata) == record


def test_columns_of_a_sample_keep_their_order():
    stored = CheckMetadata(sample=({"z": 1, "a": 2},)).to_metadata()
    assert list(CheckMetadata.from_metadata(stored).sample[0]) == ["z", "a"]


def test_a_blocked_write_of_the_version_before_says_that_there_was_no_snapshot_as_text():
    stored = {
        "iceberg/refused_branch": dg.MetadataValue.text("refused_1"),
        "iceberg/refused_snapshot_id": dg.MetadataValue.text("None"),
        "iceberg/snapshot_id": dg.MetadataValue.text("None"),
        "failed_rules": dg.MetadataValue.text("positive"),
    }
    assert BlockedMetadata.from_metadata(stored) == BlockedMetadata(
        branch="refused_1", failed_rules="positive"
    )


def test_a_key_that_another_asset_uses_for_something_else_is_read_as_absent():
    stored = {
        "sample": dg.MetadataValue.text("of rocks"),
        "failed_rows": dg.MetadataValue.text("a few"),
        "partitions": dg.MetadataValue.int(4),
        "snapshot_id": dg.MetadataValue.int(7),
    }
    assert CheckMetadata.from_metadata(stored) == CheckMetadata()
