"""Watermarks survive procedures of users, and a rollback restores them."""

from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.snapshots import History, history_of

COMPACT = (
    "CALL system.rewrite_data_files(table => 'silver.fruits', options => map('rewrite-all',"
    " 'true'))"
)
EXPIRE = (
    "CALL system.expire_snapshots(table => 'silver.fruits', older_than => now(), retain_last"
    " => 1)"
)
RAW = "bronze.raw_fruits"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of the test's own: procedures delete files."""
    return tmp_path / "home"


@pytest.mark.spark
@pytest.mark.usefixtures("spark", "sample_fruits")
class TestWatermark:
    def history(self, settings) -> History:
        return history_of("silver.fruits", Catalog.of(settings).load("silver.fruits"))

    @pytest.mark.long
    def test_is_kept_by_compaction_and_expiry_by_hand(self, lakehouse, settings):
        mark = self.history(settings).watermark(RAW)
        assert mark is not None
        for statement in (COMPACT, EXPIRE):
            assert lakehouse("sql", "--write", statement).code == 0
        kept = self.history(settings)
        assert (len(kept.line), kept.watermark(RAW)) == (1, mark)

    @pytest.mark.scenario
    def test_goes_back_with_a_rollback(self, lakehouse, settings):
        first = self.history(settings).line[-1]
        lakehouse("sql", "--write", COMPACT)
        call = f"CALL system.rollback_to_snapshot('silver.fruits', {first.snapshot_id})"
        assert lakehouse("sql", "--write", call).code == 0
        back = self.history(settings)
        assert (back.main, back.watermark(RAW)) == (first, None)
