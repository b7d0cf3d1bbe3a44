"""Arguments and options that several commands share."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from lakehouse.cli.options import declared_tables
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import Column
from lakehouse_tests.without_spark import engine_without_spark

pytestmark = pytest.mark.unit


def test_a_quarantine_has_the_columns_that_files_added(settings: Settings) -> None:
    feed = Feed("fruits", ["id"], "bronze.fruits", on_new_column="add")
    table = bronze_table(feed, "Fruits as delivered.", rules=[not_null("id")])
    engine = engine_without_spark(settings)
    ensure(engine, replace(table, columns=[*table.columns, Column("price", "string")]))
    assert table.quarantine is not None
    declared = {known.name: known for known in (table, table.quarantine)}
    state = SimpleNamespace(
        feeds={feed.name: feed},
        declared=declared,
        declared_table=declared.__getitem__,
        engine=engine,
    )

    found = declared_tables(state, ())

    assert [known.name for known in found] == sorted(declared)
    assert all("price" in known.column_names for known in found)
