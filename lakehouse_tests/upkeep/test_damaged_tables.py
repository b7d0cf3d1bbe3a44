"""A table that is damaged, or dropped in the middle, hinders the upkeep of no other; no JVM."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lakehouse.definitions import TABLES
from lakehouse.errors import TableDamaged
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.upkeep.upkeep_run import Upkept, carry_out, plan_run
from lakehouse_tests.without_spark import create_numbers, engine_without_spark

pytestmark = pytest.mark.unit

LOG = TABLES["monitoring.upkeep_runs"]
NAMES = ("silver.fruits", "silver.other")


@pytest.fixture
def engine(settings: Settings) -> Engine:
    """Two tables of two small files each."""
    made = engine_without_spark(settings)
    for name in NAMES:
        create_numbers(made, name, [[0], [1]])
    return made


@pytest.fixture
def upkept() -> Upkept:
    declared = {
        name: IcebergTable(name, "Numbers.", [Column("id", "bigint")], write=Append(once_by=()))
        for name in NAMES
    }
    return Upkept(declared, LOG, TABLES["monitoring.table_health"])


def test_a_damaged_table_is_left_out_and_named(engine: Engine, upkept: Upkept) -> None:
    damage(engine, "silver.fruits")

    planned = plan_run(engine, upkept, NAMES, named_by_user=False)

    assert list(planned.healths) == ["silver.other"]
    assert list(planned.unread) == ["silver.fruits"]
    assert {step.table for step in planned.steps} == {"silver.other"}


def test_a_damaged_table_that_is_asked_for_is_an_error(engine: Engine, upkept: Upkept) -> None:
    damage(engine, "silver.fruits")

    with pytest.raises(TableDamaged, match=r"silver\.fruits"):
        plan_run(engine, upkept, NAMES, named_by_user=True)


def test_a_table_that_is_dropped_after_the_plan_fails_alone(
    engine: Engine, upkept: Upkept
) -> None:
    planned = plan_run(engine, upkept, NAMES, named_by_user=True)
    engine.catalog.client.drop_table("silver.fruits")

    records = carry_out(engine, upkept, planned, "run")

    reasons = {record.table: record.reason for record in records}
    assert set(reasons) == set(NAMES)
    assert "silver.fruits" in reasons["silver.fruits"]
    assert engine.catalog.load(LOG.name).scan().count() == len(records)


def damage(engine: Engine, name: str) -> None:
    """Overwrite a table's metadata.json, before the engine has read it."""
    location = engine.catalog.client.load_table(name).metadata_location
    Path(urlsplit(location).path).write_text("{")
