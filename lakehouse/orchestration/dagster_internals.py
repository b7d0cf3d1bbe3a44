"""The only module that uses names of Dagster that are not public.

To support a new minor version, run `test_dagster_internals.py` with it and add it to
`SUPPORTED_VERSIONS`.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.spark.processes import user_name

if TYPE_CHECKING:
    from dagster import EventLogEntry
    from dagster._core.definitions.assets.graph.asset_graph import AssetGraph as AssetGraph
    from dagster._core.launcher import CheckRunHealthResult as CheckRunHealthResult
    from dagster._core.launcher import LaunchRunContext as LaunchRunContext

SUPPORTED_VERSIONS = ("1.12", "1.13")
DAEMON_MODULE = "dagster._daemon"
"""The daemon as a module; its script may be outside of PATH."""
_REPOSITORY = "__repository__"
"""Dagster's name of the repository of a code location with definitions."""
NO_COMPUTE_LOGS = {
    "module": "dagster._core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}
"""Instance configuration that prints the output of steps on the terminal; capturing it for the UI
would start two processes for each step.
"""
DEFERS_ASSET_EVENTS = {"dagster/defer_asset_events": "true"}
"""Tag of a run whose assets report their own materializations; otherwise Dagster reports each
partition from the first to the last one.
"""


def asset_graph(definitions: dg.Definitions) -> "AssetGraph":
    """Return the graph of all assets and checks."""
    return definitions.resolve_asset_graph()


def graph_of_repository(repository: dg.RepositoryDefinition) -> "AssetGraph":
    """Return the graph of a loaded repository."""
    return repository.asset_graph


def selected_assets(selection: dg.AssetSelection, graph: "AssetGraph") -> Set[dg.AssetKey]:
    """Return the selected assets."""
    return selection.resolve(graph)


def selected_checks(selection: dg.AssetSelection, graph: "AssetGraph") -> Set[dg.AssetCheckKey]:
    """Return the selected checks."""
    return selection.resolve_checks(graph)


def checks_of_assets(assets: Set[dg.AssetKey], graph: "AssetGraph") -> Set[dg.AssetCheckKey]:
    """Return the checks that a run of assets evaluates."""
    return graph.get_check_keys_for_assets(assets)


def job_of_all_assets(definitions: dg.Definitions) -> dg.JobDefinition:
    """Return the job that can run any of the assets."""
    return definitions.resolve_implicit_global_asset_job_def()


def job_of_name(definitions: dg.Definitions, name: str) -> dg.JobDefinition:
    """Return a job."""
    return definitions.resolve_job_def(name)


def observation_in(event: dg.DagsterEvent) -> dg.AssetObservation | None:
    """Return the observation of an event; None for another event type."""
    if event.event_type is not dg.DagsterEventType.ASSET_OBSERVATION:
        return None
    return event.asset_observation_data.asset_observation


def events_of_run(
    instance: dg.DagsterInstance,
    run_id: str,
    of_type: dg.DagsterEventType | set[dg.DagsterEventType],
    limit: int | None = None,
) -> "list[EventLogEntry]":
    """Return the events of a run, oldest first."""
    records = instance.get_records_for_run(run_id, of_type=of_type, limit=limit).records
    return [record.event_log_entry for record in records]


def new_events_of_run(
    instance: dg.DagsterInstance,
    run_id: str,
    of_type: set[dg.DagsterEventType],
    cursor: str | None,
) -> "tuple[list[EventLogEntry], str]":
    """Return the events of a run after a cursor, oldest first, and the next cursor."""
    result = instance.get_records_for_run(run_id, cursor=cursor, of_type=of_type)
    return [record.event_log_entry for record in result.records], result.cursor


def add_run_tags(instance: dg.DagsterInstance, run_id: str, tags: Mapping[str, str]) -> None:
    """Add tags to a run."""
    instance.add_run_tags(run_id, tags)


@contextmanager
def runs_of_code_location(instance: dg.DagsterInstance, location: str) -> Iterator[None]:
    """Assign runs of this process to a code location, so that the UI shows and re-executes them.

    Dagster gives them no origin and no user. The daemon does not retry them, since the user of
    the command has seen the result. Loggers of this process are not stored.
    """

    def add(dagster_run: dg.DagsterRun) -> dg.DagsterRun:
        if dagster_run.remote_job_origin:
            return add_run(dagster_run)
        run_config, tags = dict(dagster_run.run_config), {**dagster_run.tags}
        run_config.pop("loggers", None)
        if user := user_name():
            tags.setdefault("user", user)
        if instance.run_retries_enabled:
            tags["dagster/max_retries"] = "0"
        stored = dagster_run._replace(
            remote_job_origin=_job_origin(location, dagster_run.job_name),
            tags={**tags, "dagster/code_location": location},
            run_config=run_config,
        )
        return add_run(stored)._replace(run_config=dagster_run.run_config)

    with _adding_runs_by(instance, add) as add_run:
        yield


@contextmanager
def next_run_of(
    instance: dg.DagsterInstance, assets: Set[dg.AssetKey], checks: Set[dg.AssetCheckKey] | None
) -> Iterator[None]:
    """Store the selection with the next run of this process.

    :param checks: None for the checks of the assets.
    """

    def add(dagster_run: dg.DagsterRun) -> dg.DagsterRun:
        # Nested runs have their own selection.
        instance.run_storage.add_run = add_run  # type: ignore[method-assign,assignment]
        return add_run(
            dagster_run._replace(
                asset_selection=frozenset(assets),
                asset_check_selection=None if checks is None else frozenset(checks),
            )
        )

    with _adding_runs_by(instance, add) as add_run:
        yield


@contextmanager
def _adding_runs_by(
    instance: dg.DagsterInstance, add: Callable[[dg.DagsterRun], dg.DagsterRun]
) -> Iterator[Callable[[dg.DagsterRun], dg.DagsterRun]]:
    """Replace the function that stores a run; yields the original."""
    storage = instance.run_storage
    add_run = storage.add_run
    storage.add_run = add  # type: ignore[method-assign,assignment]
    try:
        yield add_run
    finally:
        storage.add_run = add_run  # type: ignore[method-assign]


def _job_origin(location: str, job_name: str) -> Any:
    from dagster._core.remote_origin import (
        RegisteredCodeLocationOrigin,
        RemoteRepositoryOrigin,
    )

    origin = RegisteredCodeLocationOrigin(location)
    return RemoteRepositoryOrigin(origin, _REPOSITORY).get_job_origin(job_name)


def fail_run(instance: dg.DagsterInstance, run: dg.DagsterRun, message: str) -> None:
    """Report a run as failed."""
    instance.report_run_failed(run, message)


def automation_states(instance: dg.DagsterInstance) -> Sequence[Any]:
    """Return the states of all sensors and schedules, including removed ones."""
    return instance.all_instigator_state()


def last_ticks(instance: dg.DagsterInstance, state: Any, limit: int) -> Sequence[Any]:
    """Return the last ticks of a sensor or schedule, newest first."""
    return instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=limit)


def check_executions(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey, limit: int
) -> Sequence[Any]:
    """Return the last executions of a check, newest first."""
    return instance.event_log_storage.get_asset_check_execution_history(key, limit=limit)


def check_summaries(
    instance: dg.DagsterInstance, keys: Iterable[dg.AssetCheckKey]
) -> Mapping[dg.AssetCheckKey, Any]:
    """Return the summary of each check, with its last execution."""
    return instance.event_log_storage.get_asset_check_summary_records(list(keys))


def last_materializations(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[int]:
    """Return the storage ids of the last materialization of each partition of an asset."""
    of_type = dg.DagsterEventType.ASSET_MATERIALIZATION
    latest = instance.event_log_storage.get_latest_storage_id_by_partition(key, of_type)
    return [*latest.values()]


@contextmanager
def open_workspace(workspace_file: str) -> Iterator[Any]:
    """Open the instance of DAGSTER_HOME with the code servers of a workspace file."""
    from dagster._cli.utils import get_instance_for_cli
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import WorkspaceFileTarget

    target = WorkspaceFileTarget([workspace_file])
    with (
        get_instance_for_cli() as instance,
        WorkspaceProcessContext(instance, target, version=dg.__version__) as context,
    ):
        yield context


def execute_run_arguments(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str | None:
    """Return the argument of `dagster api execute_run`; None for a run of another Python."""
    from dagster._grpc.types import ExecuteRunArgs

    origin = run.job_code_origin
    if origin is None or origin.executable_path != sys.executable:
        return None
    return ExecuteRunArgs(origin, run.run_id, instance.get_ref()).get_command_args()[-1]


def report_canceling(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Record that a user canceled a run."""
    instance.report_run_canceling(run)


def worker_health(problem: str) -> "CheckRunHealthResult":
    """Return the state of a run's process; run monitoring fails a run with a problem."""
    from dagster._core.launcher import CheckRunHealthResult, WorkerStatus

    status = WorkerStatus.FAILED if problem else WorkerStatus.RUNNING
    return CheckRunHealthResult(status, problem or None)


def free_slots(instance: dg.DagsterInstance, run_id: str) -> None:
    """Free the pool slots of a run."""
    instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def is_of_one_host(instance: dg.DagsterInstance) -> bool:
    """Whether all runs belong to this host: true for SQLite files, not for a database server."""
    return "Sqlite" in type(instance.event_log_storage).__name__


def set_data_version(context: dg.OutputContext, version: str) -> None:
    """Set the data version of an output's asset; IO managers have no public API for it."""
    context.step_context.set_data_version(context.asset_key, dg.DataVersion(version))


def step_started_at(context: dg.OutputContext) -> datetime:
    """Return the start of the step of an output; for a graph, of its first step."""
    node = context.step_key.partition(".")[0]
    stats = context.step_context.instance.get_run_step_stats(context.run_id)
    started = [step.start_time for step in stats if step.step_key.partition(".")[0] == node]
    return datetime.fromtimestamp(min(filter(None, started)), UTC)
