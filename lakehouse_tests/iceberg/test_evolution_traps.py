"""What Iceberg lets happen and we refuse: each test fails, and the refusal can go, once Iceberg
has learnt it.
"""

import pytest

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history

NAME = "silver.orders"


def make(engine: Engine, column: str, value: str) -> str:
    name = engine.catalog.sql_name(NAME)
    engine.sql(f"CREATE NAMESPACE IF NOT EXISTS {engine.catalog.sql_name('silver')}")
    engine.sql(
        f"CREATE TABLE {name} (id int, {column}, d date) USING iceberg PARTITIONED BY"
        " (years(d), p)"
    )
    engine.sql(
        f"INSERT INTO {name} SELECT 1, CAST({value} AS {column.split()[1]}), DATE '2024-01-01'"
    )
    return f"SELECT * FROM {name} VERSION AS OF {read_history(engine, NAME).main.snapshot_id}"


def test_dropping_a_column_that_an_old_spec_is_made_from_breaks_time_travel_and_metadata(
    embedded_engine: Engine,
) -> None:
    before = make(embedded_engine, "p string", "'x'")
    name = embedded_engine.catalog.sql_name(NAME)
    embedded_engine.sql(f"ALTER TABLE {name} DROP PARTITION FIELD p")
    embedded_engine.sql(f"ALTER TABLE {name} DROP COLUMN p")
    for query in (before, f"SELECT * FROM {name}.files"):
        with pytest.raises(
            Exception,
            match=r"ClassCastException|Cannot partition by non-primitive|INTERNAL_ERROR",
        ):
            embedded_engine.sql(query).collect()


@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [("int", "bigint", "1"), ("float", "double", "1.5")],
)
def test_widening_a_column_partitioned_by_its_values_breaks_time_travel(
    embedded_engine: Engine, narrow: str, wide: str, value: str
) -> None:
    before = make(embedded_engine, f"p {narrow}", value)
    embedded_engine.sql(
        f"ALTER TABLE {embedded_engine.catalog.sql_name(NAME)} ALTER COLUMN p TYPE {wide}"
    )
    with pytest.raises(Exception, match="ClassCastException"):
        embedded_engine.sql(before).collect()
