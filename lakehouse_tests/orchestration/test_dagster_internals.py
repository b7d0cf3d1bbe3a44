"""The private names of Dagster exist in the installed version, and one module uses them."""

import ast
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import pytest

import lakehouse
from lakehouse.orchestration.dagster_internals import (
    NO_COMPUTE_LOGS,
    SUPPORTED_VERSIONS,
    add_run_tags,
    asset_graph,
    check_executions,
    check_summaries,
    events_of_run,
    free_slots,
    graph_of_repository,
    is_of_one_host,
    job_of_all_assets,
    new_events_of_run,
    selected_assets,
    selected_checks,
)

pytestmark = pytest.mark.unit

_HOME = Path(lakehouse.__file__).parent
_NOT_PUBLIC = {
    "add_run_tags",
    "all_instigator_state",
    "asset_graph",
    "event_log_storage",
    "get_records_for_run",
    "get_repository_def",
    "get_runs",
    "get_ticks",
    "report_engine_event",
    "report_run_failed",
    "resolve_asset_graph",
    "resolve_checks",
    "resolve_implicit_global_asset_job_def",
    "schedule_storage",
    "run_storage",
    "step_context",
}
"""Attributes that Dagster does not mark as public, by names that nothing of ours has."""
_USERS = {"orchestration/dagster_internals.py"}
"""The module that uses what is not public."""
KEY = dg.AssetCheckKey(dg.AssetKey("fruit"), "ripe")


@dg.asset(check_specs=[dg.AssetCheckSpec("ripe", asset="fruit")])
def fruit() -> dg.MaterializeResult:
    return dg.MaterializeResult(
        check_results=[dg.AssetCheckResult(check_name="ripe", passed=True)]
    )


def test_the_installed_version_is_supported() -> None:
    installed = version("dagster").rpartition(".")[0]
    assert installed in SUPPORTED_VERSIONS, (
        f"Dagster {installed} is installed; supported are {', '.join(SUPPORTED_VERSIONS)}. Run"
        " the tests with it, and add it to SUPPORTED_VERSIONS."
    )


@pytest.mark.long
def test_what_checks_did_is_read_from_the_storage(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for _ in range(2):
            assert dg.materialize([fruit], instance=instance).success
        executions = check_executions(instance, KEY, limit=5)
        summary = check_summaries(instance, [KEY])[KEY].last_completed_check_execution_record
        assert executions[0].id == summary.id
        assert [record.event.dagster_event.event_type_value for record in executions] == [
            "ASSET_CHECK_EVALUATION"
        ] * 2
        assert is_of_one_host(instance)
        free_slots(instance, executions[0].run_id)


@pytest.mark.long
def test_a_run_is_selected_and_what_it_did_is_read(tmp_path: Path) -> None:
    definitions = dg.Definitions([fruit])
    graph, every = asset_graph(definitions), dg.AssetSelection.all()
    assert graph_of_repository(definitions.get_repository_def()).toposorted_asset_keys == [
        dg.AssetKey("fruit")
    ]
    assert selected_assets(every, graph) == {dg.AssetKey("fruit")}
    assert selected_checks(every | dg.AssetSelection.all_asset_checks(), graph) == {KEY}
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        run_id = job_of_all_assets(definitions).execute_in_process(instance=instance).run_id
        evaluation = dg.DagsterEventType.ASSET_CHECK_EVALUATION
        (entry,) = events_of_run(instance, run_id, evaluation)
        (new,), cursor = new_events_of_run(instance, run_id, {evaluation}, None)
        assert new.timestamp == entry.timestamp
        assert new_events_of_run(instance, run_id, {evaluation}, cursor) == ([], cursor)
        assert entry.get_dagster_event().asset_check_evaluation_data.passed
        add_run_tags(instance, run_id, {"seen": "by somebody"})
        run = instance.get_run_by_id(run_id)
        assert run is not None
        assert run.tags["seen"] == "by somebody"


def test_the_manager_that_keeps_no_logs_is_there() -> None:
    assert getattr(import_module(NO_COMPUTE_LOGS["module"]), NO_COMPUTE_LOGS["class"])


def private_uses(tree: ast.AST) -> list[str]:
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dagster._"):
            uses.append(node.module or "")
        if isinstance(node, ast.Attribute) and node.attr in _NOT_PUBLIC:
            uses.append(node.attr)
        if isinstance(node, ast.Constant) and str(node.value).startswith("dagster._"):
            uses.append(str(node.value))
    return uses


@pytest.mark.scenario
def test_no_other_module_uses_it() -> None:
    using = {
        file.relative_to(_HOME).as_posix()
        for file in _HOME.rglob("*.py")
        if private_uses(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert using == _USERS
