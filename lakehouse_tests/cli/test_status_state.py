"""`lakehouse status`: stale, blocked and failed tables, incidents and feeds; no JVM."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent, StepFailureData
from dagster._core.test_utils import create_run_for_test
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

from lakehouse.alerts.alert_state import AlertState, write_state
from lakehouse.alerts.incidents import Firing, Incident, Kind
from lakehouse.definitions import TABLES, defs
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.blocked_tables import note_blocked
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.incident_reports import Severity
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_progress import tables_of_steps
from lakehouse.settings import Settings
from lakehouse_tests.cli.outcomes import record_of as record_in
from lakehouse_tests.cli.outcomes import stop_sensor

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


def block(settings: Settings, snapshot_id: int) -> str:
    """Note that a run blocked silver as computed from a snapshot of bronze."""
    with open_instance(settings) as instance:
        run = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE)
        note_blocked(instance, run.run_id, TABLES[SILVER], (), {BRONZE: snapshot_id})
    return run.run_id


def state_of(lakehouse, table: str = SILVER) -> tuple[bool, str | None, str]:
    """What status says in JSON, and in its table."""
    one = record_of(lakehouse, table)
    header, _, *lines = (line.split(" | ") for line in lakehouse("status").out)
    column = [name.strip() for name in header].index("state")
    (shown,) = (line[column].strip() for line in lines if line[0].strip() == table)
    return one["stale"], one["refused_by"], shown


def test_a_table_is_stale_until_it_is_computed_from_what_came(lakehouse, settings, arrive):
    assert state_of(lakehouse) == (False, None, "not there")
    came = arrive()
    assert state_of(lakehouse) == (True, None, "stale")
    compute(settings, came)
    assert state_of(lakehouse) == (False, None, "")
    assert state_of(lakehouse, BRONZE) == (False, None, "")


@pytest.mark.long
def test_a_table_is_blocked_until_its_input_changes(lakehouse, settings, arrive):
    run_id = block(settings, arrive())
    report_check(settings, passed=True)
    assert state_of(lakehouse) == (True, run_id, "blocked")
    # The check evaluated a candidate that readers do not see.
    assert record_of(lakehouse)["checks_passed"] == 0
    assert "passed" not in "".join(lakehouse("status").out)
    arrive()
    assert state_of(lakehouse) == (True, None, "stale")


def record_of(lakehouse, table: str = SILVER) -> dict[str, Any]:
    return record_in(lakehouse("status", "--format", "json"), table)


def report_check(settings: Settings, *, passed: bool) -> None:
    with open_instance(settings) as instance:
        evaluation = dg.AssetCheckEvaluation(
            asset_key(SILVER), "excluded_fruit_in_any_spelling", passed=passed, metadata={}
        )
        instance.report_runless_asset_event(evaluation)


def fail(settings: Settings, *tables: str, at: str) -> str:
    """Record a run of some tables that failed at the step of one of them."""
    steps = {table: step for step, table in tables_of_steps(asset_graph(defs)).items()}
    with open_instance(settings) as instance:
        run_id = create_run_for_test(instance).run_id
        events = [
            DagsterEvent.build_asset_materialization_planned_event(
                "job", steps[table], AssetMaterializationPlannedData(asset_key(table))
            )
            for table in tables
        ]
        data = StepFailureData(error=None, user_failure_data=None)
        failure = dg.DagsterEventType.STEP_FAILURE.value
        events.append(
            DagsterEvent(failure, "job", step_key=steps[at], event_specific_data=data)
        )
        for event in events:
            instance.report_dagster_event(event, run_id)
        instance.report_run_failed(instance.get_run_by_id(run_id))
    return run_id


@pytest.mark.long
def test_a_table_whose_last_run_failed_is_failed_and_not_stale(lakehouse, settings, arrive):
    arrive()
    run_id = fail(settings, BRONZE, SILVER, at=SILVER)
    assert state_of(lakehouse)[2] == "failed"
    assert record_of(lakehouse)["failed_run"] == run_id
    assert state_of(lakehouse, BRONZE)[2] == ""
    arrive()
    fail(settings, BRONZE, SILVER, at=BRONZE)
    # It was not computed, since the table before it failed.
    assert state_of(lakehouse)[2] == "stale"


def open_incident(settings: Settings, kind: Kind, severity: Severity, table: str) -> None:
    firing = Firing(
        f"{kind} {table}",
        kind,
        datetime.now(UTC),
        severity,
        f"{table} has an incident",
        links=("Reason: x", "Table: http://127.0.0.1:3000/assets/silver/fruits"),
        table=table,
    )
    write_state(settings, AlertState(open={firing.key: Incident.of(firing)}))


@pytest.mark.parametrize(
    ("kind", "severity", "state"),
    [
        ("blocked", "error", "blocked"),
        ("failed", "error", "failed"),
        ("check", "error", "failed"),
        ("overdue", "error", "late"),
        ("upkeep", "error", "error"),
        ("rejected", "error", "error"),
        ("quarantined", "warn", ""),
    ],
)
def test_a_table_with_an_open_error_is_not_ok(
    lakehouse, settings: Settings, arrive: Arrive, kind: Kind, severity: Severity, state: str
) -> None:
    compute(settings, arrive())
    open_incident(settings, kind, severity, SILVER)
    assert state_of(lakehouse)[2] == state
    assert record_of(lakehouse)["state"] == (state or "ok")


@pytest.mark.long
def test_the_worst_table_is_first_and_all_fits_120_columns(
    lakehouse, settings: Settings, arrive: Arrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(7):
        compute(settings, arrive())
    report_check(settings, passed=False)
    open_incident(settings, "failed", "error", SILVER)
    out = lakehouse("status").out
    assert out[2].startswith(SILVER)
    assert max(map(len, out)) <= 120
    assert out[-2].startswith("error: silver.fruits has an incident, since ")


def test_a_feed_with_a_rejected_file_or_a_stopped_sensor_is_marked(lakehouse, settings):
    def warnings() -> list[str]:
        return record_of(lakehouse, BRONZE)["feed_warnings"]

    assert warnings() == []
    inbox, rejected = settings.home / "inbox/fruits", settings.home / "rejected/fruits"
    for folder in (inbox, rejected):
        folder.mkdir(parents=True, exist_ok=True)
    (inbox / "new.csv").write_text("id,fruit,berry\n")
    os.utime(inbox / "new.csv", (1_700_000_000, 1_700_000_000))
    assert warnings() == []
    (rejected / "bad.csv").write_text("x")
    reason = {
        "file": "bad.csv",
        "reason": "no header",
        "found": "x",
        "expected": "id",
        "next_step": "",
        "rejected_at": datetime.now(UTC).isoformat(),
    }
    (rejected / "bad.csv.reason.json").write_text(json.dumps(reason))
    stop_sensor(settings, "fruits_files")
    assert warnings() == [
        "1 rejected file",
        "sensor fruits_files is stopped, files waiting: 1",
    ]
    line = "feed fruits: 1 rejected file; sensor fruits_files is stopped, files waiting: 1"
    assert line in lakehouse("status").out
