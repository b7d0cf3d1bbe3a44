"""Samples of the rows that break a rule."""

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.spark


def test_times_that_python_does_not_know_are_shown_as_text(embedded_engine: Engine) -> None:
    table = IcebergTable(
        "silver.far",
        "Far away.",
        [Column("d", "date"), Column("at", "timestamp"), Column("v", "int")],
        write=Overwrite(),
        rules=[between("v", 0, 1, on_failure="warn")],
    )
    far = "SELECT DATE '9999-12-31' + 1 AS d, TIMESTAMP '9999-12-31' + INTERVAL 2 DAYS AS at, 7 AS v"
    done = write(embedded_engine, table, lambda: embedded_engine.sql(far))

    assert isinstance(done, Published)
    (result,) = [found for found in done.results if found.rule.name == "between_v"]
    (broken,) = result.sample
    assert (broken["d"], broken["at"]) == ("+10000-01-01", "+10000-01-02 00:00:00")
