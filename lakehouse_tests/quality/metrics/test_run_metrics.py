"""What is read of a write's and of a check's metadata."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.metadata_keys import WriteMetadata
from lakehouse.quality.metrics.metric import Metric
from lakehouse.quality.metrics.run_metrics import of_check, of_write
from lakehouse.settings import Settings

AT = datetime(2026, 3, 1, tzinfo=UTC)
KEY = dg.AssetKey(["silver", "fruits"])


def evaluation(passed: bool, **metadata: object) -> dg.AssetCheckEvaluation:
    normal = {
        name: (
            dg.MetadataValue.int(value)
            if isinstance(value, int)
            else dg.MetadataValue.text(str(value))
        )
        for name, value in metadata.items()
    }
    return dg.AssetCheckEvaluation(
        asset_key=KEY, check_name="rule", passed=passed, metadata=normal
    )


def test_a_check_is_measured_by_the_share_of_rows_that_break_it():
    found = list(
        of_check(evaluation(True, failed_rows=1, total_rows=4, snapshot_id=str(2**62)), AT)
    )

    assert found == [Metric("silver.fruits", "failed_fraction.rule", 0.25, AT, 2**62, None, 4)]


@pytest.mark.parametrize(("passed", "share"), [(True, 0.0), (False, 1.0)])
def test_a_check_that_counts_no_rows_fails_as_a_whole(passed, share):
    assert [metric.value for metric in of_check(evaluation(passed), AT)] == [share]


def test_a_table_that_was_dropped_since_is_measured_without_its_growth(settings: Settings):
    """All that its run measured, of other tables too, would not be kept otherwise."""
    settings.make_home()
    metadata = WriteMetadata(snapshot_id=1, row_count=4).to_metadata()

    found = list(
        of_write(
            dg.AssetMaterialization(KEY, metadata=metadata), AT, Catalog.of(settings), zones={}
        )
    )

    assert found == [Metric("silver.fruits", "record_count", 4, AT, 1)]
