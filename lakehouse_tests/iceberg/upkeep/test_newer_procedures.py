"""Steps that the Iceberg of an older Spark lacks are skipped by name."""

from datetime import UTC, datetime

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.settings import Settings
from lakehouse.upkeep.compaction import compact
from lakehouse_tests.iceberg.upkeep.tables import (
    MERGE_ON_READ,
    NAME,
    TARGET_BYTES,
    create,
    rows,
    size_bytes,
)


def test_a_step_is_done_or_left_out_by_name(glue_engine: Engine, settings: Settings) -> None:
    glue_engine.sql(f"INSERT INTO {create(glue_engine, 'id bigint')} VALUES (1)")
    result = remove_orphans(glue_engine, NAME, older_than=datetime.now(UTC))
    assert result.outcome == "skipped"
    if settings.iceberg == "1.7.1":
        assert result.reason == "Iceberg 1.7.1 has no prefix_listing"
    else:
        assert "unreferenced" in result.reason


@pytest.mark.long
def test_a_large_table_is_compacted_by_any_iceberg(glue_engine: Engine) -> None:
    name = create(glue_engine, "id bigint", properties=MERGE_ON_READ)
    for at in range(4):
        glue_engine.sql(
            f"INSERT INTO {name} SELECT /*+ REPARTITION(1) */ id FROM"
            f" range({10 * at}, {10 * at + 10})"
        )
    glue_engine.sql(f"DELETE FROM {name} WHERE id = 3")
    before = rows(glue_engine)

    chunk_bytes = size_bytes(glue_engine) * 2 // 3
    result = compact(glue_engine, NAME, target_bytes=TARGET_BYTES, chunk_bytes=chunk_bytes)

    assert (result.outcome, result.reason) == ("done", "")
    assert result.step_metrics["files_after"] <= 2
    assert rows(glue_engine) == before
