"""Procedures that a person calls: what a table was computed from outlives them, and a rollback
goes back with it.
"""

from pathlib import Path

import pytest

from lakehouse.cli.sql_text.procedures import called_tables, check_calls
from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History, history_of

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


@pytest.mark.unit
@pytest.mark.parametrize(
    "call",
    [
        "CALL system.expire_snapshots(table => lower('SILVER.FRUITS'))",
        "CALL system.expire_snapshots(table => 'silver' || '.fruits')",
        "CALL system.expire_snapshots('fruits')",
        "CALL system.expire_snapshots()",
        "EXECUTE IMMEDIATE 'CALL system.expire_snapshots(table => ?)' USING 'silver.fruits'",
        "WITH x AS (SELECT 1) CALL system.expire_snapshots(table => x)",
    ],
)
def test_a_call_whose_table_cannot_be_told_is_refused_by_name(call: str) -> None:
    with pytest.raises(
        UsageError, match=r"CALL expire_snapshots.*cannot be told.*table => 'namespace.table'"
    ):
        check_calls([call])


@pytest.mark.unit
def test_calls_that_tell_their_table_may_run() -> None:
    statements = [
        COMPACT,
        "CALL system.ancestors_of(x)",
        "CALL other.system.migrate('other.a.b')",
        "SELECT 1",
    ]
    check_calls(statements)
    assert called_tables(statements) == ["silver.fruits"]


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

    @pytest.mark.long
    def test_is_kept_by_an_expiry_whose_text_does_not_tell(self, lakehouse, settings):
        mark = self.history(settings).watermark(RAW)
        lakehouse("sql", "--write", "INSERT INTO silver.fruits (fruit) VALUES ('Quince')")
        assert lakehouse("sql", "--write", f"BEGIN {EXPIRE}; END").code == 0
        kept = self.history(settings)
        assert (kept.watermark(RAW), kept.last_write.commit.declaration) == (mark, "")

    @pytest.mark.scenario
    def test_goes_back_with_a_rollback(self, lakehouse, settings):
        first = self.history(settings).line[-1]
        lakehouse("sql", "--write", COMPACT)
        call = f"CALL system.rollback_to_snapshot('silver.fruits', {first.snapshot_id})"
        assert lakehouse("sql", "--write", call).code == 0
        back = self.history(settings)
        assert (back.main, back.watermark(RAW)) == (first, None)
