"""Upkeep knows the incremental readers of the declared tables; no JVM."""

import pyarrow as pa
import pytest

from lakehouse.definitions import PROJECT
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.settings import Settings
from lakehouse.upkeep.upkeep_run import plan_run
from lakehouse_tests.without_spark import create_numbers, engine_without_spark

pytestmark = pytest.mark.unit

RAW, READER = "bronze.raw_fruits", "silver.fruits"


def test_the_watermark_of_an_incremental_reader_pins_a_snapshot(settings: Settings) -> None:
    engine = engine_without_spark(settings)
    first = create_numbers(engine, RAW, [[1], [2]]).history()[0].snapshot_id
    stamp = CommitProperties("write", "w", inputs={RAW: first}).to_summary()
    create_numbers(engine, READER).append(pa.table({"id": [1]}), snapshot_properties=stamp)

    plan = plan_run(engine, PROJECT.upkept(), [RAW], named_by_user=False)

    assert [(pin.owner, pin.snapshot_id) for pin in plan.healths[RAW].pins] == [
        (f"watermark of {READER}", first)
    ]
