"""`lakehouse status` says which tables are stale or blocked, and what upkeep does with needless
files; no JVM.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.test_utils import create_run_for_test
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

from lakehouse.definitions import TABLES, defs
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.orchestration.blocked_tables import note_refused
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.instance import open_instance
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse_tests.cli.outcomes import records

pytestmark = pytest.mark.unit

BRONZE, SILVER = "bronze.raw_fruits", "silver.fruits"
Arrive = Callable[[], int]


@pytest.fixture
def arrive(settings: Settings) -> Arrive:
    """Lets a row come to bronze, and returns the snapshot of that."""
    engine = open_engine(settings)
    ensure(engine, TABLES[BRONZE])

    def append() -> int:
        table = engine.catalog.load(BRONZE)
        schema = table.schema().as_arrow()
        row = {field.name: some(field.type) for field in schema}
        table.append(pa.Table.from_pylist([row], schema))
        return main_of(settings, BRONZE)

    return append


def some(column_type: pa.DataType) -> object:
    if pa.types.is_timestamp(column_type):
        return datetime.now(UTC)
    return 1 if pa.types.is_integer(column_type) else "x"


def main_of(settings: Settings, table: str) -> int:
    main = read_history(open_engine(settings), table).main
    assert main is not None
    return main.snapshot_id


def compute(settings: Settings, snapshot_id: int, code_version: str = "") -> None:
    """Commit silver as computed from a snapshot of bronze, by a version of the code."""
    client = open_engine(settings).catalog.client
    client.create_namespace_if_not_exists("silver")
    fields = Schema(NestedField(1, "fruit", StringType()))
    table = client.create_table_if_not_exists(SILVER, fields)
    properties = CommitProperties(
        "write", "w", inputs={BRONZE: snapshot_id}, code_version=code_version
    )
    table.append(pa.table({"fruit": ["Apple"]}), properties.to_summary())


def refuse(settings: Settings, snapshot_id: int) -> str:
    """Note that a run refused silver as computed from a snapshot of bronze."""
    with open_instance(settings) as instance:
        run = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE)
        note_refused(instance, run.run_id, TABLES[SILVER], (), {BRONZE: snapshot_id})
    return run.run_id


def state_of(lakehouse, table: str = SILVER) -> tuple[bool, str | None, str]:
    """What status says in JSON, and in its table."""
    (one,) = (
        record
        for record in records(lakehouse("status", "--format", "json"))
        if record["table"] == table
    )
    header, _, *lines = (line.split(" | ") for line in lakehouse("status").out)
    column = [name.strip() for name in header].index("state")
    (shown,) = (line[column].strip() for line in lines if line[0].strip() == table)
    return one["stale"], one["refused_by"], shown


def test_a_table_is_stale_until_it_is_computed_from_what_came(
    lakehouse, settings: Settings, arrive: Arrive
) -> None:
    assert state_of(lakehouse) == (False, None, "")
    came = arrive()
    assert state_of(lakehouse) == (True, None, "stale")
    compute(settings, came)
    assert state_of(lakehouse) == (False, None, "")
    assert state_of(lakehouse, BRONZE) == (False, None, "")


@pytest.mark.long
def test_a_refused_table_is_blocked_until_its_input_changes(
    lakehouse, settings: Settings, arrive: Arrive
) -> None:
    run_id = refuse(settings, arrive())
    assert state_of(lakehouse) == (True, run_id, "blocked")
    arrive()
    assert state_of(lakehouse) == (True, None, "stale")


def test_a_refused_table_that_was_published_since_is_not_blocked(
    lakehouse, settings: Settings, arrive: Arrive
) -> None:
    came = arrive()
    refuse(settings, came)
    compute(settings, came)
    assert state_of(lakehouse) == (False, None, "")


@pytest.mark.long
def test_rows_of_older_code_are_said(lakehouse, settings: Settings, arrive: Arrive) -> None:
    def code() -> tuple[str | None, str]:
        said = records(lakehouse("status", "--format", "json"))
        (silver,) = (record for record in said if record["table"] == SILVER)
        return silver["code"], state_of(lakehouse)[2]

    assert code() == (None, "")
    came = arrive()
    compute(settings, came)
    # As a home has it that an earlier version wrote.
    assert code() == ("unknown", "")
    compute(settings, came, "0123456789ab")
    assert code() == ("older", "older code")
    now = asset_graph(defs).get(dg.AssetKey(["silver", "fruits"])).code_version
    compute(settings, came, now)
    assert code() == ("current", "")


def health_of(lakehouse, table: str) -> str:
    header, _, *lines = (line.split(" | ") for line in lakehouse("status").out)
    column = [name.strip() for name in header].index("health")
    (shown,) = (line[column].strip() for line in lines if line[0].strip() == table)
    return shown


def test_tables_are_shown_also_where_what_upkeep_remembers_is_damaged(
    lakehouse, settings: Settings, arrive: Arrive
) -> None:
    for _ in range(6):
        arrive()
    client = open_engine(settings).catalog.client
    client.create_namespace("monitoring")
    client.create_table("monitoring.upkeep_runs", Schema(NestedField(1, "id", StringType())))
    (metadata,) = settings.home.glob("warehouse/monitoring/upkeep_runs/metadata/*.json")
    metadata.unlink()
    said = health_of(lakehouse, BRONZE)
    assert said.startswith("small files 5; unknown, since what upkeep remembers")


def test_why_upkeep_leaves_small_files_is_said(lakehouse, arrive: Arrive) -> None:
    for _ in range(6):
        arrive()
    said = health_of(lakehouse, BRONZE)
    assert said.startswith("small files 5; ")
    (plan,) = [
        step["reason"]
        for step in records(lakehouse("maintain", "--dry-run", "--format", "json"))
        if (step["table"], step["step"]) == (BRONZE, "compact")
    ]
    assert said == f"small files 5; {plan}"
