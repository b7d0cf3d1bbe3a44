"""What EMR is called with, looked at by stubs of its clients: no job is run."""

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import dagster as dg
import pytest
from dagster_pipes import (
    PipesContext,
    PipesMappingParamsLoader,
    PipesS3MessageWriter,
    open_dagster_pipes,
)
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.errors import SettingsError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.values.write_result import Unchanged
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.orchestration.table_jobs import job_services
from lakehouse.orchestration.table_jobs.job_answer import outcome_message
from lakehouse.orchestration.table_jobs.job_choice import TableJobs
from lakehouse.settings import Settings, TableJob
from lakehouse.storage.s3 import open_bucket
from lakehouse.table_job import _ReadOnce
from lakehouse.tables.table import Column, IcebergTable, Overwrite
from lakehouse_tests.conftest import keep_versions

pytestmark = [
    pytest.mark.unit,
    # Clients of dagster-aws use them.
    pytest.mark.filterwarnings(r"ignore:AssetExecutionContext\.\w+ is deprecated"),
]
TABLE = IcebergTable("gold.figures", "Figures.", [Column("id", "bigint")], write=Overwrite())
SERVERLESS = {
    "applicationId": "app",
    "executionRoleArn": "role",
    "jobDriver": {"sparkSubmit": {"sparkSubmitParameters": "--conf spark.jars=iceberg.jar"}},
}


@iceberg_asset(TABLE)
def figures():
    raise AssertionError("A job computes it.")


class ServerlessStub:
    def __init__(self, state: str) -> None:
        self.state, self.started, self.cancelled = state, {}, []
        self.meta = SimpleNamespace(region_name="eu-central-1")
        self.is_running = threading.Event()

    def start_job_run(self, **params: Any) -> dict[str, str]:
        self.started = params
        return {"jobRunId": "run", "applicationId": params["applicationId"]}

    def get_job_run(self, **_: Any) -> dict[str, Any]:
        self.is_running.set()
        return {"jobRun": {"state": self.state, "applicationId": "app", "jobRunId": "run"}}

    def cancel_job_run(self, **params: Any) -> None:
        self.cancelled.append(params)
        self.state = "CANCELLED"


class ClusterStub:
    def __init__(self, settings: Settings, message: Any) -> None:
        self.settings, self.message, self.started = settings, message, {}
        self.meta = SimpleNamespace(region_name="eu-central-1")

    def run_job_flow(self, **params: Any) -> dict[str, str]:
        self.started = params
        arguments = params["Steps"][-1]["HadoopJarStep"]["Args"][2:]
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        pipes_params = {
            "DAGSTER_PIPES_CONTEXT": given["--dagster-pipes-context"],
            "DAGSTER_PIPES_MESSAGES": given["--dagster-pipes-messages"],
        }
        client = boto3.client("s3", endpoint_url=self.settings.endpoint_url)
        with open_dagster_pipes(
            context_loader=_ReadOnce(client),
            message_writer=PipesS3MessageWriter(client, interval=0.1),
            params_loader=PipesMappingParamsLoader(pipes_params),
        ) as pipes:
            self.request = pipes.extras
            pipes.report_custom_message(self.message)
        return {"JobFlowId": "j-1"}

    def describe_cluster(self, **_: Any) -> dict[str, Any]:
        return {"Cluster": {"Id": "j-1", "Status": {"State": "TERMINATED"}}}


def make_table(settings: Settings) -> None:
    client = Catalog.of(settings).client
    client.create_namespace("gold")
    client.create_table("gold.figures", Schema(NestedField(1, "id", LongType())))


@pytest.fixture
def run(aws_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def ran(service: str, stub: Any, params: dict[str, Any]) -> RunResult:
        file = tmp_path / "job.json"
        file.write_text(json.dumps(params))
        monkeypatch.setattr(job_services, "aws_client", lambda *_, **__: stub)
        # Each job is a process of its own, which opens its pipes once.
        monkeypatch.setattr(PipesContext, "_instance", None)
        settings = replace(aws_settings, jobs=(TableJob("gold.*", service, str(file)),))
        engine = Engine(Catalog.of(settings), lambda: None, settings.lock_dir, b"testing")
        io = IcebergIOManager(engine=engine, declared={}, jobs=TableJobs(settings))
        definitions = dg.Definitions([figures], resources={"io_manager": io})
        with open_instance(settings) as instance:
            return materialize(definitions, instance, dg.AssetSelection.all())

    return ran


@pytest.mark.long
def test_emr_serverless_is_given_the_script_and_where_to_answer(run):
    stub = ServerlessStub("FAILED")
    result = run("emr-serverless", stub, SERVERLESS)

    assert not result.success
    assert "The job emr-serverless:" in result.messages[0]
    submit = stub.started["jobDriver"]["sparkSubmit"]
    assert submit["entryPoint"] == "s3://lake/jobs/script.py"
    argument, code, *pipes = submit["entryPointArguments"]
    assert argument == "--lakehouse-code"
    assert code.startswith("s3://lake/jobs/code/")
    assert pipes[::2] == ["--dagster-pipes-context", "--dagster-pipes-messages"]
    assert submit["sparkSubmitParameters"] == "--conf spark.jars=iceberg.jar"


@pytest.mark.long
def test_an_interrupt_cancels_a_job_of_emr_serverless(run):
    stub = ServerlessStub("RUNNING")
    interrupting = threading.Thread(
        target=lambda: stub.is_running.wait(60) and os.kill(os.getpid(), signal.SIGINT)
    )
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        run("emr-serverless", stub, SERVERLESS)

    interrupting.join()
    assert stub.cancelled == [{"applicationId": "app", "jobRunId": "run"}]


@pytest.mark.long
def test_a_cluster_of_emr_is_given_a_step_and_ends_after_it(run, aws_settings):
    outcome = Unchanged("gold.figures", "", None)
    stub = ClusterStub(aws_settings, outcome_message(outcome))
    make_table(aws_settings)
    result = run("emr", stub, {"Name": "figures", "Instances": {}})

    assert result.success, result.messages
    (step,) = stub.started["Steps"]
    assert step["ActionOnFailure"] == "TERMINATE_CLUSTER"
    assert step["HadoopJarStep"]["Args"][:3] == [
        "spark-submit",
        "s3://lake/jobs/script.py",
        "--lakehouse-code",
    ]
    assert stub.request["table"] == "gold.figures"
    assert stub.started["Instances"] == {"KeepJobFlowAliveWhenNoSteps": False}
    assert result.asset("gold.figures").status == "unchanged"


def test_a_job_removes_what_it_was_asked_with_its_version(aws_settings):
    store = open_bucket(aws_settings)
    keep_versions(store)
    store.write_text("jobs/runs/a/context.json", "{}")
    request = {"bucket": store.bucket, "key": "jobs/runs/a/context.json"}
    with _ReadOnce(store.client).load_context(request) as context:
        assert context == {}
        assert store.all_versions("jobs/runs/") == []


@pytest.mark.parametrize("content", ["", "[1]"])
def test_a_file_that_holds_no_parameters_is_named(content, tmp_path):
    file = tmp_path / "job.json"
    file.write_text(content)

    with pytest.raises(SettingsError, match=r"names .*job\.json for gold\.\*: found"):
        job_services.start_params(TableJob("gold.*", "emr", str(file)))
