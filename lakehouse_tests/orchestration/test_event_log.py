"""The event log of commands: Dagster's own, in the same files, read by either of the two."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqliteEventLogStorage

from lakehouse.orchestration.event_log import EventLog
from lakehouse.orchestration.instance import dagster_home, open_instance
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit

KINDS = dg.StaticPartitionsDefinition(["a", "b"])
CHECKS = [dg.AssetCheckSpec(name, asset="fruit") for name in ("ripe", "round")]


@dg.asset(check_specs=CHECKS)
def fruit() -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
    yield dg.MaterializeResult(
        metadata={"eaten": 3},
        check_results=[
            dg.AssetCheckResult(check_name=spec.name, passed=spec.name == "ripe")
            for spec in CHECKS
        ],
    )


@dg.asset(
    check_specs=[dg.AssetCheckSpec(spec.name, asset="kilos") for spec in CHECKS],
    partitions_def=KINDS,
)
def kilos() -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
    yield dg.MaterializeResult(
        check_results=[
            dg.AssetCheckResult(check_name=spec.name, passed=True) for spec in CHECKS
        ]
    )


PARTITIONED = dg.Definitions(assets=[kilos]).resolve_implicit_global_asset_job_def()
JOB = dg.Definitions(assets=[fruit]).resolve_implicit_global_asset_job_def()


def said(instance: dg.DagsterInstance, run_id: str) -> list[tuple[str | None, str]]:
    return [
        (entry.dagster_event_type and entry.dagster_event_type.value, entry.message)
        for entry in instance.all_logs(run_id)
    ]


def outcome(instance: dg.DagsterInstance) -> tuple:
    made = instance.get_latest_materialization_event(dg.AssetKey("fruit"))
    assert made is not None
    assert made.asset_materialization is not None
    checks = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [spec.key for spec in CHECKS]
    )
    states = {key.name: record.status.value for key, record in checks.items()}
    return made.run_id, made.asset_materialization.metadata["eaten"].value, states


@pytest.mark.long
def test_dagster_reads_what_a_command_wrote_and_a_command_what_dagster_wrote(
    settings: Settings,
) -> None:
    states = {"ripe": "SUCCEEDED", "round": "FAILED"}
    with open_instance(settings) as instance:
        assert isinstance(instance.event_log_storage, EventLog)
        ours = JOB.execute_in_process(instance=instance).run_id
        told, found = said(instance, ours), outcome(instance)
    assert found == (ours, 3, states)
    with dg.DagsterInstance.from_config(str(dagster_home(settings))) as instance:
        assert not isinstance(instance.event_log_storage, EventLog)
        assert (said(instance, ours), outcome(instance)) == (told, found)
        theirs = JOB.execute_in_process(instance=instance).run_id
    with open_instance(settings) as instance:
        assert outcome(instance) == (theirs, 3, states)
        assert len(said(instance, theirs)) == len(told)


def test_both_write_to_one_run_in_turn(settings: Settings) -> None:
    with (
        open_instance(settings) as command,
        dg.DagsterInstance.from_config(str(dagster_home(settings))) as server,
    ):
        run = JOB.execute_in_process(instance=command).dagster_run
        for number in range(3):
            command.report_engine_event(f"command {number}", run)
            server.report_engine_event(f"server {number}", run)
        told = [message for _, message in said(command, run.run_id)][-6:]
        assert told == [
            f"{who} {number}" for number in range(3) for who in ("command", "server")
        ]
        assert said(server, run.run_id) == said(command, run.run_id)


@pytest.mark.long
def test_of_many_runs_each_keeps_its_events_and_few_files_are_open(settings: Settings) -> None:
    with open_instance(settings) as instance:
        runs = [JOB.execute_in_process(instance=instance).run_id for _ in range(7)]
        counts = {len(said(instance, run_id)) for run_id in runs}
        assert len(counts) == 1
        assert len(instance.event_log_storage._engines) == 4


def test_the_file_of_a_later_run_is_as_that_of_the_first(settings: Settings) -> None:
    with open_instance(settings) as instance:
        paths = [
            instance.event_log_storage.path_for_shard(
                JOB.execute_in_process(instance=instance).run_id
            )
            for _ in range(2)
        ]
        assert instance.event_log_storage._empty
    assert not list(Path(paths[0]).parent.glob(".*")), "nothing half-written is left"
    first, second = (shape_of(path) for path in paths)
    assert first == second and ("wal",) in first


def shape_of(path: str) -> list[tuple]:
    """The tables and indexes of a file, how it keeps its journal, and its revision."""
    with closing(sqlite3.connect(path)) as connection:
        asked = (
            "SELECT sql FROM sqlite_master ORDER BY name",
            "PRAGMA journal_mode",
            "SELECT * FROM alembic_version",
        )
        return [row for statement in asked for row in connection.execute(statement)]


def test_each_check_speaks_of_the_materialization_of_its_run(settings: Settings) -> None:
    with open_instance(settings) as instance:
        for _ in range(2):
            run_id = PARTITIONED.execute_in_process(instance=instance, partition_key="a").run_id
            events = instance.get_records_for_run(
                run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
            ).records
            told = [
                record.event_log_entry.dagster_event.event_specific_data for record in events
            ]
            assert len(told) == len(CHECKS)
            assert {one.target_materialization_data.run_id for one in told} == {run_id}


def test_what_dagster_asks_for_each_check_is_answered_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def counted(name: str) -> None:
        ask = getattr(SqliteEventLogStorage, name)
        monkeypatch.setattr(
            SqliteEventLogStorage,
            name,
            lambda log, *of: (asked.append(of[0]), ask(log, *of))[1],
        )

    counted("has_table")
    counted("fetch_materializations")
    with open_instance(settings) as instance:
        PARTITIONED.execute_in_process(instance=instance, partition_key="a")
    assert len(CHECKS) > 1
    assert asked.count("asset_check_executions") == 1
    assert sum(isinstance(of, dg.AssetRecordsFilter) for of in asked) == 1


def test_a_run_that_is_deleted_is_gone_and_the_others_stay(settings: Settings) -> None:
    with open_instance(settings) as instance:
        gone, stays = (JOB.execute_in_process(instance=instance).run_id for _ in range(2))
        instance.delete_run(gone)
        assert not said(instance, gone)
        assert said(instance, stays)


def test_all_that_is_wiped_is_gone_and_what_comes_after_is_kept(settings: Settings) -> None:
    with open_instance(settings) as instance:
        before = JOB.execute_in_process(instance=instance).run_id
        instance.wipe()
        assert not said(instance, before)
        after = JOB.execute_in_process(instance=instance).run_id
        assert outcome(instance)[0] == after


@pytest.mark.long
def test_a_storage_that_the_instance_names_is_used(settings: Settings) -> None:
    file = dagster_home(settings) / "dagster.yaml"
    chosen = f"storage:\n  sqlite:\n    base_dir: {settings.home / 'elsewhere'}\n"
    file.write_text(file.read_text(encoding="utf-8") + chosen, encoding="utf-8")
    with open_instance(settings) as instance:
        assert not isinstance(instance.event_log_storage, EventLog)
        JOB.execute_in_process(instance=instance)
    assert list((settings.home / "elsewhere").rglob("*.db"))
