"""Dagster's storage without a person: what it was written by reads it as before."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickData, TickStatus

from lakehouse.orchestration.instance import open_instance
from lakehouse.privacy.places.scrub import scrub_places
from lakehouse.settings import Settings
from lakehouse_tests.privacy.places.a_person import EMAIL, NEIGHBOUR, PASSPORT, PERSON, traces

pytestmark = pytest.mark.unit

ORDERS = dg.AssetKey(["silver", "orders"])
ROWS = [
    {"customer_id": 7, "email": EMAIL, "amount": 9.5},
    {"customer_id": 8, "email": NEIGHBOUR, "amount": 7.0},
]


@dg.asset(key=ORDERS, check_specs=[dg.AssetCheckSpec("valid", asset=ORDERS)])
def orders(context: dg.AssetExecutionContext) -> Iterator[object]:
    context.log.warning(f"{EMAIL} has no address")
    sample = dg.MetadataValue.table([dg.TableRecord(row) for row in ROWS])
    yield dg.MaterializeResult(
        metadata={
            "customer_id": 7,
            "passport": int(PASSPORT),
            "to": dg.MetadataValue.md(f"*{EMAIL}*"),
            "at": dg.MetadataValue.path(f"/data/{EMAIL}.csv"),
            "by": dg.MetadataValue.json({"email": EMAIL, "rows": 7}),
        },
        check_results=[
            dg.AssetCheckResult(
                check_name="valid",
                passed=False,
                description=f"{EMAIL} breaks it.",
                metadata={"sample": sample, "failed_rows": 7},
            )
        ],
        tags={"to": "x"},
    )


@dg.op
def send() -> None:
    raise ValueError(f"{EMAIL} could not be reached")


@dg.job(metadata={"owner": EMAIL})
def mail() -> None:
    send()


DEFINITIONS = dg.Definitions([orders], jobs=[mail])


@pytest.fixture
def failed(settings: Settings) -> Settings:
    """A home with runs that failed on the person, and ticks and cursors that name them."""
    with open_instance(settings) as instance:
        job = DEFINITIONS.resolve_implicit_global_asset_job_def()
        job.execute_in_process(instance=instance, tags={"customer": EMAIL})
        mail.execute_in_process(instance=instance, raise_on_error=False)
        instance.run_storage.set_cursor_values(
            {"cursor": f'{{"customer_id": 7, "to": "{PASSPORT}"}}'}
        )
        instance.create_tick(
            TickData(
                instigator_origin_id="origin",
                instigator_name="sensor",
                instigator_type=InstigatorType.SENSOR,
                status=TickStatus.SKIPPED,
                timestamp=0.0,
                selector_id="selector",
                skip_reason=f"{EMAIL} waits",
                cursor=EMAIL,
            )
        )
    return settings


def scrub(settings: Settings) -> set[str]:
    done = scrub_places(settings, [PERSON])
    assert all(place.is_done for place in done), done
    return {Path(place.place).name for place in done if place.outcome == "erased"}


@pytest.mark.long
def test_no_byte_is_left_in_any_database(failed):
    before = traces(failed.home)
    assert {"dagster/history/runs.db", "dagster/history/runs/index.db"} <= {*before}
    assert "dagster/schedules/schedules.db" in before

    done = scrub(failed)

    assert {Path(file).name for file in before} <= done
    assert traces(failed.home) == []
    assert scrub(failed) == set()


@pytest.mark.long
def test_no_run_and_no_event_is_gone_and_all_are_read(failed):
    before = counts(failed)

    scrub(failed)

    assert counts(failed) == before
    with open_instance(failed) as instance:
        statuses = [run.status.value for run in instance.get_runs()]
        assert statuses == ["FAILURE", "SUCCESS"]
        for run in instance.get_runs():
            assert instance.get_job_snapshot(run.job_snapshot_id)
            assert instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id)
            assert len(instance.all_logs(run.run_id)) > 5


def test_what_was_materialized_is_read_with_its_types(failed):
    scrub(failed)

    with open_instance(failed) as instance:
        event = instance.get_latest_materialization_event(ORDERS)
    metadata = event.asset_materialization.metadata
    assert metadata["customer_id"].value == 0
    assert metadata["passport"].value == 0
    assert metadata["to"].value == "*[erased]*"
    assert metadata["at"].value == "/data/[erased].csv"
    assert metadata["by"].value == {"email": "[erased]", "rows": 7}


@pytest.mark.long
def test_of_the_sample_of_a_check_the_row_of_the_person_goes(failed):
    scrub(failed)

    with open_instance(failed) as instance:
        key = dg.AssetCheckKey(ORDERS, "valid")
        (record,) = instance.event_log_storage.get_asset_check_execution_history(key, limit=5)
        evaluation = record.event.dagster_event.event_specific_data
    rows = [record.data for record in evaluation.metadata["sample"].records]
    assert rows == [{"customer_id": 0, "email": "[erased]", "amount": 0}, ROWS[1]]
    assert evaluation.description == "[erased] breaks it."
    assert evaluation.metadata["failed_rows"].value == 7


@pytest.mark.long
def test_errors_and_lines_of_logs_say_what_happened_without_whom(failed):
    scrub(failed)

    with open_instance(failed) as instance:
        logs = [entry for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
    texts = [entry.user_message for entry in logs]
    assert "[erased] has no address" in texts
    failures = [
        entry.dagster_event.step_failure_data.error.cause.message
        for entry in logs
        if entry.dagster_event and entry.dagster_event.is_step_failure
    ]
    assert failures == ["ValueError: [erased] could not be reached\n"]


def test_tags_cursors_and_ticks_are_read(failed):
    scrub(failed)

    with open_instance(failed) as instance:
        (run,) = instance.get_runs(dg.RunsFilter(tags={"customer": "[erased]"}))
        (tick,) = instance.get_ticks("origin", "selector")
        cursor = instance.run_storage.get_cursor_values({"cursor"})["cursor"]
    assert run.tags["customer"] == "[erased]"
    assert (tick.skip_reason, tick.cursor) == ("[erased] waits", "[erased]")
    assert cursor == '{"customer_id": 0, "to": "[erased]"}'


@pytest.mark.long
def test_an_instance_that_is_open_in_another_process_goes_on(failed):
    work = """
import sys
from lakehouse.orchestration.instance import open_instance
from lakehouse.settings import Settings
with open_instance(Settings.from_env()) as instance:
    runs = instance.get_runs()
    print(len(runs), flush=True)
    sys.stdin.readline()
    instance.run_storage.set_cursor_values({"after": "1"})
    print([run.tags.get("customer") for run in instance.get_runs()], flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", work],
        env={"LAKEHOUSE_HOME": str(failed.home), "PYTHONPATH": ":".join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline() == "2\n"
        scrub(failed)
        assert traces(failed.home) == []
        other.stdin.write("\n")
        other.stdin.close()
        assert other.stdout.readline() == "[None, '[erased]']\n"

    assert traces(failed.home) == []


def counts(settings: Settings) -> dict[str, int]:
    """Return the number of rows of each table in Dagster's databases."""
    found = {}
    for file in sorted(settings.dagster_home.rglob("*.db")):
        with closing(sqlite3.connect(file)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                rows = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                found[f"{file.name} {table}"] = rows
    return found
