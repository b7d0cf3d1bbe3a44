"""Files of an older partition spec stand in the way of reading by partitions until they are
rewritten, and no longer.
"""

import pyarrow as pa
import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.partition_metadata import changed_values
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.rows_outside_partitions import outside_values
from lakehouse.iceberg.values.value_ranges import AllPartitions
from lakehouse.settings import Settings
from lakehouse_tests.without_spark import engine_without_spark

pytestmark = pytest.mark.unit

NAME = "silver.visits"
VISITS = pa.table({"shop": ["Ipoh", "Melaka"], "pages": [3, 5]})
EVERY = AllPartitions(values=frozenset({"Ipoh"}))


@pytest.fixture
def engine_on_catalog(settings: Settings) -> Engine:
    """An engine that starts no Spark, on a table that was parted by shop once it had rows."""
    engine = engine_without_spark(settings)
    engine.catalog.client.create_namespace("silver")
    table = engine.catalog.client.create_table(NAME, schema=VISITS.schema)
    table.append(VISITS)
    with table.update_spec() as update:
        update.add_identity("shop")
    return engine


def read_shops(engine: Engine) -> tuple[set[str], dict[str, int]]:
    """Return the shops that there are, and the rows of those that lie in no partition."""
    table, history = engine.catalog.load(NAME), read_history(engine, NAME)
    assert history.main is not None
    until = history.main.snapshot_id
    shops = changed_values(table, history, None, until, "shop")
    return shops, dict(outside_values(table, until, "shop", EVERY))


def test_files_of_an_older_spec_are_named(engine_on_catalog: Engine) -> None:
    with pytest.raises(DeclarationError, match="files of a partition spec without it"):
        read_shops(engine_on_catalog)


def test_once_they_are_rewritten_nothing_is_in_the_way(engine_on_catalog: Engine) -> None:
    table = engine_on_catalog.catalog.client.load_table(NAME)
    table.append(pa.table({"shop": ["Ipoh", "Johor"], "pages": [13, 15]}))
    table.delete("pages < 10")

    assert read_shops(engine_on_catalog) == ({"Ipoh", "Johor"}, {"Johor": 1})
