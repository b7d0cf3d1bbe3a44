"""What the lakehouse uses of Dagster that Dagster does not call public; all but the storage of
events, which is in `event_log`, the processes of runs, in `warm_runs.dagster_runs`, and those of
`lakehouse dev`, in `dev_services`, `prompt_daemons` and `freshness_when_due`.

`test_dagster_internals.py` fails where another version than `LOOKED_AT` is installed. Then look
whether each of these is still there and does the same, or has become public, run that test, and
set the version.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import dagster as dg

from lakehouse.runtime.processes import user_name

if TYPE_CHECKING:
    from dagster import EventLogEntry
    from dagster._core.definitions.assets.graph.asset_graph import AssetGraph as AssetGraph
    from dagster._core.definitions.job_definition import JobDefinition
    from dagster._core.remote_origin import RemoteJobOrigin
    from dagster._core.scheduler.instigation import InstigatorState, InstigatorTick

LOOKED_AT = "1.13.27"
_REPOSITORY = "__repository__"
"""How Dagster names the one repository of a code location that is made of definitions."""
NO_COMPUTE_LOGS = {
    "module": "dagster._core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}
"""Configuration of an instance that leaves the output of steps on the terminal; catching it for
the UI would start two processes for each step.
"""
EVALUATED_ALONE = {"lakehouse/evaluated_alone": True}
"""Metadata of a check that no run evaluates which computes assets as well."""
NOTES_ITS_ASSETS = {"dagster/defer_asset_events": "true"}
"""Tag of a run whose assets note themselves what is computed, see `note_planned` and
`note_computed`. Of a run of partitions from a first to a last, Dagster would note each between
them too: as computed, or as failed until it is.
"""


def asset_graph(definitions: dg.Definitions) -> "AssetGraph":
    """Return the graph of all assets and checks; what it is asked, mypy looks at."""
    return definitions.resolve_asset_graph()


def graph_of_repository(repository: dg.RepositoryDefinition) -> "AssetGraph":
    """Return the graph of what a server of user code has loaded."""
    return repository.asset_graph


def selected_assets(selection: dg.AssetSelection, graph: "AssetGraph") -> Set[dg.AssetKey]:
    """Return the assets that are selected."""
    return selection.resolve(graph)


def selected_checks(selection: dg.AssetSelection, graph: "AssetGraph") -> Set[dg.AssetCheckKey]:
    """Return the checks that are selected; beside assets none that is evaluated alone, which
    Dagster would show as failed where the run fails.
    """
    checks = selection.resolve_checks(graph)
    if not selected_assets(selection, graph):
        return checks
    return checks - _evaluated_alone(checks, graph)


def checks_of_assets(assets: Set[dg.AssetKey], graph: "AssetGraph") -> Set[dg.AssetCheckKey]:
    """Return the checks that are evaluated by a run of some assets."""
    checks = graph.get_check_keys_for_assets(assets)
    return checks - _evaluated_alone(checks, graph)


def _evaluated_alone(
    checks: Set[dg.AssetCheckKey], graph: "AssetGraph"
) -> Set[dg.AssetCheckKey]:
    metadata = {key: graph.get_check_spec(key).metadata for key in checks}
    return {key for key in checks if metadata[key].keys() >= EVALUATED_ALONE.keys()}


def job_of_all_assets(definitions: dg.Definitions) -> "JobDefinition":
    """Return the job that can run any of the assets."""
    return definitions.resolve_implicit_global_asset_job_def()


def job_of_name(definitions: dg.Definitions, name: str) -> "JobDefinition":
    """Return a job."""
    return definitions.resolve_job_def(name)


def observation_in(event: dg.DagsterEvent) -> dg.AssetObservation | None:
    """Return what an event says was observed of an asset; None of an event of another type."""
    if event.event_type is not dg.DagsterEventType.ASSET_OBSERVATION:
        return None
    return event.asset_observation_data.asset_observation


def events_of_run(
    instance: dg.DagsterInstance,
    run_id: str,
    of_type: dg.DagsterEventType | set[dg.DagsterEventType],
    limit: int | None = None,
) -> "list[EventLogEntry]":
    """Return the events of a run, the oldest first."""
    records = instance.get_records_for_run(run_id, of_type=of_type, limit=limit).records
    return [record.event_log_entry for record in records]


def add_run_tags(instance: dg.DagsterInstance, run_id: str, tags: Mapping[str, str]) -> None:
    """Add tags to a run."""
    instance.add_run_tags(run_id, tags)


@contextmanager
def runs_of_code_location(instance: dg.DagsterInstance, location: str) -> Iterator[None]:
    """Let runs that are made in this process be of a code location, as those are that the UI
    asks for; the landing page shows no other, and executes no other again.

    Dagster gives them no origin, and does not say who made them. They are not tried again by the
    daemon, since whoever ran the command has its answer. Loggers are of this process, and left
    out of what is kept of a run's configuration.
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
    """Let the next run that is made in this process say what it is of.

    :param checks: what it is of beside assets; None of those that belong to the assets.
    """

    def add(dagster_run: dg.DagsterRun) -> dg.DagsterRun:
        # A run of a run has its own.
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
    """Put a function in the place of what stores a run, which is yielded."""
    storage = instance.run_storage
    add_run = storage.add_run
    storage.add_run = add  # type: ignore[method-assign,assignment]
    try:
        yield add_run
    finally:
        storage.add_run = add_run  # type: ignore[method-assign]


def _job_origin(location: str, job_name: str) -> "RemoteJobOrigin":
    """Return where Dagster finds a job: by names, whatever process serves the code."""
    from dagster._core.remote_origin import (
        RegisteredCodeLocationOrigin,
        RemoteRepositoryOrigin,
    )

    origin = RegisteredCodeLocationOrigin(location)
    return RemoteRepositoryOrigin(origin, _REPOSITORY).get_job_origin(job_name)


def show_with_run(instance: dg.DagsterInstance, run: dg.DagsterRun, message: str) -> None:
    """Add a message to the events of a run."""
    instance.report_engine_event(message, run)


def fail_run(instance: dg.DagsterInstance, run: dg.DagsterRun, message: str) -> None:
    """Report a run as failed."""
    instance.report_run_failed(run, message)


def automation_states(instance: dg.DagsterInstance) -> "Sequence[InstigatorState]":
    """Return the states of all sensors and schedules that there ever were."""
    return instance.all_instigator_state()


def last_ticks(
    instance: dg.DagsterInstance, state: "InstigatorState", limit: int
) -> "Sequence[InstigatorTick]":
    """Return the last ticks of a sensor or schedule, the newest first."""
    return instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=limit)


def newest_event(instance: dg.DagsterInstance) -> int | None:
    """Return the number of the newest event of a check, an asset or a run's state: the same as
    long as there is none; None where the storage of events is no SQL database.
    """
    from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
    from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
    from sqlalchemy import func, select

    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return None
    with storage.index_connection() as connection:
        newest: int | None = connection.scalar(select(func.max(SqlEventLogStorageTable.c.id)))
    return newest


def latest_check_executions(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]
) -> Mapping[dg.AssetCheckKey, Any]:
    """Return the last execution of each check: one query for all, where the public summary is
    one for each.
    """
    return instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)


def check_executions(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey, limit: int
) -> Sequence[Any]:
    """Return the last executions of a check, the newest first."""
    return instance.event_log_storage.get_asset_check_execution_history(key, limit=limit)


def check_summaries(
    instance: dg.DagsterInstance, keys: Iterable[dg.AssetCheckKey]
) -> Mapping[dg.AssetCheckKey, Any]:
    """Return what is known of the last execution of each check, with its event."""
    return instance.event_log_storage.get_asset_check_summary_records(list(keys))


def last_materializations(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[int]:
    """Return the storage ids of the last materialization of each partition of an asset."""
    of_type = dg.DagsterEventType.ASSET_MATERIALIZATION
    latest = instance.event_log_storage.get_latest_storage_id_by_partition(key, of_type)
    return [*latest.values()]


def free_slots(instance: dg.DagsterInstance, run_id: str) -> None:
    """Free the slots of pools that a run holds."""
    instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def is_of_one_host(instance: dg.DagsterInstance) -> bool:
    """Whether all runs are of this host: a folder of SQLite files is of one, a database server
    is not.
    """
    from dagster._core.storage.event_log import SqliteEventLogStorage

    return isinstance(instance.event_log_storage, SqliteEventLogStorage)


def set_data_version(context: dg.OutputContext, version: str) -> None:
    """Give the asset of an output its data version; an IO manager has no public way to."""
    context.step_context.set_data_version(context.asset_key, dg.DataVersion(version))


def step_started_at(context: dg.OutputContext) -> datetime:
    """Return when the step that makes an output started; of a graph, its first step."""
    node = context.step_key.partition(".")[0]
    stats = context.step_context.instance.get_run_step_stats(context.run_id)
    started = [step.start_time for step in stats if step.step_key.partition(".")[0] == node]
    return datetime.fromtimestamp(min(filter(None, started)), UTC)


def is_stopped(context: dg.SensorEvaluationContext) -> bool:
    """Whether somebody stopped the sensor, perhaps since its tick began."""
    states = context.instance.all_instigator_state()
    of_sensor = [one for one in states if one.instigator_name == context.sensor_name]
    return any(state.status.value == "STOPPED" for state in of_sensor)


@contextmanager
def holding_interrupts() -> Iterator[Callable[[], bool]]:
    """Keep interrupts from ending what runs in the block, and give what says whether one came
    since it was last asked.
    """
    from dagster._utils.interrupts import capture_interrupts, pop_captured_interrupt

    with capture_interrupts():
        yield pop_captured_interrupt


class NamedWindows(Protocol):
    """Partitions by windows of time that have a name."""

    @property
    def name(self) -> str:
        """What the instance keeps some of them by."""
        ...


def show_as_dynamic(kind: type[NamedWindows]) -> None:
    """Let the UI take windows of time of some kind for dynamic partitions of their name, and show
    those that the instance was told of; in the processes that run code they stay what they are.

    Dagster's webserver and daemon know partitions by a description only, which these two
    functions make, of those of an asset and of those of a job. A description of dynamic ones is
    a name, and has no public way to be made of others.
    """
    from dagster._core.definitions.partitions.snap import DynamicPartitionsSnap, PartitionsSnap

    of_partitions = PartitionsSnap.from_def

    def describe(partitions: Any) -> Any:
        if not isinstance(partitions, kind):
            return of_partitions(partitions)
        _describe_jobs_alike()
        return DynamicPartitionsSnap(name=partitions.name)

    PartitionsSnap.from_def = staticmethod(describe)  # type: ignore[method-assign,assignment]


@cache
def _describe_jobs_alike() -> None:
    """Let the partitions of a job be described as those of its assets are.

    Assets are described first, and only where code is served: what this imports takes a command
    a tenth of a second.
    """
    from dagster._core.definitions.partitions.snap import PartitionsSnap
    from dagster._core.remote_representation.external_data import PartitionSetSnap
    from dagster_shared.record import replace

    of_job = PartitionSetSnap.from_job_def

    def describe(job: "JobDefinition") -> PartitionSetSnap:
        assert job.partitions_def is not None
        return replace(of_job(job), partitions=PartitionsSnap.from_def(job.partitions_def))

    PartitionSetSnap.from_job_def = staticmethod(describe)  # type: ignore[method-assign,assignment]


def add_partitions(instance: dg.DagsterInstance, name: str, keys: Sequence[str]) -> bool:
    """Add dynamic partitions; return whether that was done, and not another process quicker with
    one of them.
    """
    from sqlalchemy.exc import IntegrityError

    try:
        instance.add_dynamic_partitions(name, keys)
    except IntegrityError:
        return False
    return True


def notes_its_assets(context: dg.AssetExecutionContext) -> bool:
    """Whether the assets of a run note themselves what is computed."""
    return NOTES_ITS_ASSETS.items() <= context.run.tags.items()


def note_planned(
    context: dg.AssetExecutionContext, asset: dg.AssetKey, partitions: Sequence[str]
) -> None:
    """Note which partitions of an asset a run is about to compute, or that it computes all of an
    asset without any: until they are noted as computed, the UI shows that, or that they failed.
    """
    from dagster._core.events import AssetMaterializationPlannedData

    step = _step_of(context)
    planned: Sequence[str | None] = partitions or [None]
    for partition in planned:
        event = dg.DagsterEvent.build_asset_materialization_planned_event(
            context.job_name,
            step.step.key,
            AssetMaterializationPlannedData(asset, partition, partitions_subset=None),
        )
        context.instance.report_dagster_event(event, context.run.run_id, logging.DEBUG)


def note_computed(
    context: dg.AssetExecutionContext,
    result: "dg.MaterializeResult[Any]",
    partitions: Sequence[str],
) -> None:
    """Note that some partitions of an asset were computed, or all of an asset without any, as
    Dagster would.
    """
    from dagster._core.definitions.assets.definition.asset_spec import AssetExecutionType
    from dagster._core.execution.plan.execute_step import _get_output_asset_events

    assert result.asset_key is not None
    step = _step_of(context)
    if result.data_version:
        step.set_data_version(result.asset_key, result.data_version)
    events = _get_output_asset_events(
        result.asset_key,
        partitions,
        dg.Output(None, metadata=result.metadata, tags=result.tags),
        step.op_def.output_defs[0],
        {},
        step,
        AssetExecutionType.MATERIALIZATION,
    )
    for event in events:
        context.log_event(event)


def _step_of(context: dg.AssetExecutionContext) -> Any:
    return context.op_execution_context.get_step_execution_context()
