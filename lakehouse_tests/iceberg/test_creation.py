"""A table that is created without Spark is the one that Spark's DDL creates."""

from dataclasses import replace
from uuid import uuid4

import pytest

from lakehouse.iceberg.evolve.creation import create_without_spark
from lakehouse.iceberg.evolve.planning import ensure, plan
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.table_state import read_state
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.conftest import newer_iceberg
from lakehouse_tests.iceberg.evolving import NAME, columns, declared

ALL_TYPES = [
    Column("id", "bigint", "The key; it's ${HOME}.", required=True),
    *columns(
        at="timestamp",
        seen="timestamp_ntz",
        day="date",
        amount="decimal(10,2)",
        small="int",
        ratio="float",
        share="double",
        is_new="boolean",
        bytes="binary",
        region="string",
        tags="array<string>",
        lines="array<struct<price:decimal(8,2),codes:map<string,array<int>>>>",
        place="struct<lat:double,lon:double,`street name`:string>",
    ),
    Column("Mail", "string", personal=True),
    Column("with space", "string"),
]
DECLARED = [
    declared(),
    declared(columns=ALL_TYPES, owner="data", target_file_mb=16),
    declared(columns=ALL_TYPES, format_version=1),
    *(
        declared(columns=ALL_TYPES, partitioning=[partitioning], sort_order=[sort_order])
        for partitioning, sort_order in (
            ("days(at)", "id desc"),
            ("hours(seen)", "region desc nulls last"),
            ("months(day)", "bucket(4, id)"),
            ("years(day)", "at nulls last"),
            ("bucket(id, 16)", "small"),
            ("truncate(3, region)", "days(at) desc nulls first"),
            ("small", "Mail desc"),
        )
    ),
    declared(columns=ALL_TYPES, partitioning=["region", "days(at)", "bucket(8, id)"]),
]


@newer_iceberg("gives tables that SQL creates no location of their own")
@pytest.mark.parametrize("table", DECLARED, ids=lambda table: ", ".join(table.partitioning))
def test_it_is_what_ddl_makes(engine: Engine, table: IcebergTable) -> None:
    ensure(engine, table)
    ours = engine.catalog.load(NAME).metadata
    engine.sql(f"DROP TABLE {engine.catalog.sql_name(NAME)}")
    for step in plan(table, None).steps:
        for statement in step.statements(engine.catalog, NAME):
            engine.sql(statement)
    theirs = engine.catalog.load(NAME).metadata

    assert ours.schema() == theirs.schema()
    assert ours.spec() == theirs.spec()
    assert ours.sort_order_by_id(ours.default_sort_order_id) == theirs.sort_order_by_id(
        theirs.default_sort_order_id
    )
    assert ours.format_version == theirs.format_version
    assert ours.properties.items() <= theirs.properties.items()
    assert _folder(ours.location) == _folder(theirs.location)


@pytest.fixture
def offline(settings: Settings) -> Engine:
    """An engine that opens no session."""
    return open_engine(settings)


def _folder(location: str) -> str:
    """Return a location without what makes it a table's own."""
    return location[: -len(uuid4().hex)]


@pytest.mark.parametrize("table", DECLARED, ids=lambda table: ", ".join(table.partitioning))
def test_nothing_is_left_to_do(offline: Engine, table: IcebergTable) -> None:
    assert create_without_spark(offline, table)
    assert plan(table, read_state(offline, NAME)).is_empty


def test_a_format_that_spark_alone_writes_is_left_to_it(offline: Engine) -> None:
    assert not create_without_spark(offline, declared(format_version=3))
    assert not offline.catalog.has(NAME)


def test_it_is_made_where_a_declaration_says(offline: Engine) -> None:
    location = offline.catalog.pyiceberg["warehouse"] + "/elsewhere"
    ensure(offline, replace(declared(), location=location))

    assert offline.catalog.load(NAME).location() == location
