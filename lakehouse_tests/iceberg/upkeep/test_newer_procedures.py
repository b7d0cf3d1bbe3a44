"""What the Iceberg of an older Spark lacks: the step is left out by name, and the table is as it
was.
"""

from datetime import UTC, datetime

import pytest

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.spark_line import is_spark_3
from lakehouse.iceberg.upkeep.compact import compact
from lakehouse.iceberg.upkeep.newer_procedures import ProcedureMissing, call_newer
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.iceberg.upkeep.table_statistics import compute_statistics
from lakehouse.settings import Settings
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
    results = [
        compute_statistics(glue_engine, NAME),
        remove_orphans(glue_engine, NAME, older_than=datetime.now(UTC)),
    ]
    if settings.iceberg != "1.7.1":
        assert results[0].outcome == "done"
        assert "unreferenced" in results[1].reason
        return
    assert [(result.outcome, result.reason) for result in results] == [
        ("skipped", f"the Iceberg that Spark has here, 1.7.1, has no {name}")
        for name in ("compute_table_stats", "prefix_listing")
    ]


@pytest.mark.long
@pytest.mark.parametrize("step", [10, 0])
def test_a_large_partition_is_compacted_by_any_iceberg(glue_engine: Engine, step: int) -> None:
    name = create(glue_engine, "id bigint", properties=MERGE_ON_READ)
    for at in range(4):
        glue_engine.sql(
            f"INSERT INTO {name} SELECT /*+ REPARTITION(1) */ id FROM"
            f" range({step * at}, {step * at + 10})"
        )
    glue_engine.sql(f"DELETE FROM {name} WHERE id = 3")
    before = rows(glue_engine)

    result = compact(
        glue_engine,
        NAME,
        target_bytes=TARGET_BYTES,
        chunk_bytes=size_bytes(glue_engine) * 2 // 3,
    )

    assert (result.outcome, result.reason) == ("done", "")
    assert result.step_metrics["files_after"] <= 2
    assert rows(glue_engine) == before


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("reorder_rows(table => 'silver.sick')", "reorder_rows"),
        ("expire_snapshots(table => 'silver.sick', kindly => true)", "kindly"),
    ],
)
def test_what_is_missing_is_named(glue_engine: Engine, call: str, missing: str) -> None:
    if not is_spark_3():
        pytest.skip("whoever has Spark 4 has an Iceberg that is new enough")
    with pytest.raises(ProcedureMissing, match=f"has no {missing}$"):
        call_newer(glue_engine, call)
