"""A created table matches its declaration."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import create_table, ensure, plan
from lakehouse.iceberg.metadata.table_state import read_state
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable
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


@pytest.fixture
def offline(settings: Settings) -> Engine:
    return open_engine(settings)


@pytest.mark.parametrize("table", DECLARED, ids=lambda table: ", ".join(table.partitioning))
def test_a_created_table_needs_no_change(offline: Engine, table: IcebergTable) -> None:
    create_table(offline, table)
    assert plan(table, read_state(offline, NAME)).is_empty


def test_a_table_is_created_at_its_location(offline: Engine) -> None:
    location = offline.catalog.pyiceberg["warehouse"] + "/elsewhere"
    ensure(offline, replace(declared(), location=location))

    assert offline.catalog.load(NAME).location() == location
