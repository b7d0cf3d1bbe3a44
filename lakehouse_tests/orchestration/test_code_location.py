"""Runs of the command line are those of the code location, as the UI shows and repeats them."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.auto_run_reexecution.auto_run_reexecution import (
    filter_runs_to_should_retry,
)

from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.settings import SAMPLES, Settings
from lakehouse_tests.dagster_homes import query

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
RUNS_OF_CODE_LOCATION = """
query ($label: String!) {
  runsOrError(filter: {tags: [{key: ".dagster/repository", value: $label}]}) {
    ... on Runs {
      results {
        runId
        repositoryOrigin { repositoryName repositoryLocationName }
        assetSelection { path }
        assetCheckSelection { name assetKey { path } }
        runConfigYaml
        tags { key }
      }
    }
  }
}
"""


@dg.asset(key=["gold", "quick"])
def quick() -> None:
    pass


@dg.asset_check(asset=["gold", "quick"], name="alone")
def alone() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


@dg.asset(key=["gold", "broken"])
def broken() -> None:
    raise ValueError("It is broken.")


defs = dg.Definitions([quick, broken], asset_checks=[alone])


@pytest.fixture
def ui(instance: dg.DagsterInstance) -> Iterator[Any]:
    target = LoadableTargetOrigin(python_file=__file__, attribute="defs")
    origin = InProcessCodeLocationOrigin(target, location_name=SAMPLES)
    load = InProcessWorkspaceLoadTarget([origin])
    with WorkspaceProcessContext(instance, load) as process:
        yield process.create_request_context()


def shown(ui: Any) -> list[Mapping[str, Any]]:
    label = {"label": f"__repository__@{SAMPLES}"}
    answer = query(ui, RUNS_OF_CODE_LOCATION, label)
    runs: list[Mapping[str, Any]] = answer.data["runsOrError"]["results"]
    return runs


@pytest.mark.long
def test_a_run_of_a_command_belongs_to_the_code_location(instance, ui) -> None:
    ran = materialize(defs, instance, dg.AssetSelection.assets(["gold", "quick"]))
    (run,) = shown(ui)
    assert run["runId"] == ran.run_id
    assert run["repositoryOrigin"] == {
        "repositoryName": "__repository__",
        "repositoryLocationName": SAMPLES,
    }
    assert run["assetSelection"] == [{"path": ["gold", "quick"]}]
    assert run["assetCheckSelection"] is None


def test_a_run_of_checks_alone_says_which(instance, ui) -> None:
    check = dg.AssetCheckKey(dg.AssetKey(["gold", "quick"]), "alone")
    materialize(defs, instance, dg.AssetSelection.checks(check))
    (run,) = shown(ui)
    assert run["assetSelection"] == []
    assert run["assetCheckSelection"] == [
        {"name": "alone", "assetKey": {"path": ["gold", "quick"]}}
    ]


def test_the_ui_can_execute_it_again(instance, ui) -> None:
    from dagster_graphql.client.query import LAUNCH_PIPELINE_REEXECUTION_MUTATION

    ran = materialize(defs, instance, dg.AssetSelection.assets(["gold", "quick"]))
    again = {"parentRunId": ran.run_id, "strategy": "ALL_STEPS"}
    answer = query(ui, LAUNCH_PIPELINE_REEXECUTION_MUTATION, {"reexecutionParams": again})
    launched = answer.data["launchPipelineReexecution"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    (newest, _) = shown(ui)
    assert (newest["runId"], newest["runConfigYaml"]) == (launched["run"]["runId"], "{}\n")


def test_a_failed_one_is_not_tried_again_by_the_daemon(settings: Settings) -> None:
    settings.dagster_home.mkdir(parents=True)
    own = "telemetry: {enabled: false}\nrun_retries: {enabled: true, max_retries: 3}\n"
    (settings.dagster_home / "dagster.yaml").write_text(own, encoding="utf-8")
    with open_instance(settings) as instance:
        ran = materialize(defs, instance, dg.AssetSelection.assets(["gold", "broken"]))
        assert not ran.success
        run = instance.get_run_by_id(ran.run_id)
        assert list(filter_runs_to_should_retry([run], instance)) == []


def test_its_name_is_the_same_wherever_dagster_loads_it(settings: Settings) -> None:
    workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text(encoding="utf-8"))
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (load,) = workspace["load_from"]
    assert {
        load["python_module"]["location_name"],
        tool["dagster"]["code_location_name"],
        tool["dg"]["project"]["code_location_name"],
        # `lakehouse dev` uses it as the name of the code location.
        settings.definitions,
    } == {SAMPLES}
