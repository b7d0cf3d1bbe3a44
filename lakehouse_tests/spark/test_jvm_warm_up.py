"""What a Spark is to have done before somebody waits for it."""

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.spark.jvm_warm_up import write_each_way
from lakehouse_tests.conftest import whatever_the_catalog

pytestmark = pytest.mark.spark


@pytest.mark.long
@whatever_the_catalog
def test_tables_are_written_in_each_way_and_then_changed(engine: Engine) -> None:
    write_each_way(engine)
    written = {}
    for name in sorted(engine.catalog.tables()):
        main = read_history(engine, name).main
        assert main is not None
        written[name] = main.rows
    assert written == {
        "bronze.warmed": 12,
        "gold.warmed_profiles": 2,
        "gold.warmed_sums": 1,
        "silver.warmed_days": 4,
        "silver.warmed_days_quarantine": 4,
        "silver.warmed_names": 2,
        "silver.warmed_names_quarantine": 2,
    }
