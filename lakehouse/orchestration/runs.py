"""Assets materialized in this process, through Dagster, on the instance that its UI shows."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from lakehouse.errors import UsageError
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import (
    asset_graph,
    checks_of_assets,
    job_of_all_assets,
    job_of_name,
    next_run_of,
    selected_assets,
    selected_checks,
)
from lakehouse.orchestration.dead_runs import fail_dead_runs
from lakehouse.orchestration.partition_bounds import range_tags
from lakehouse.orchestration.run_result import RunResult, is_interrupted, read_result
from lakehouse.orchestration.shown_partitions import show_range
from lakehouse.runtime.processes import Process
from lakehouse.settings import Settings

AFTER_RUN = "after_run"
"""Key of the resource of a project that is told of each run that a command made, once it has
ended.
"""

_STATUS = dg.DagsterRunStatus
UNFINISHED = [_STATUS.QUEUED, _STATUS.STARTING, _STATUS.STARTED, _STATUS.CANCELING]
"""Runs that a sensor waits for before it asks for the next. One that is not started is none of
them: it is so between its making and its queueing, and for ever where the daemon died in between.
"""

OnEvent = Callable[[dg.DagsterEvent], None]
AfterRun = Callable[[dg.DagsterInstance, str], object]
MakeDefinitions = Callable[[Callable[[], Settings]], dg.Definitions]
"""Makes the definitions of a project, given what reads the settings."""


def materialize(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    selection: dg.AssetSelection,
    *,
    partition: str | tuple[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    on_event: OnEvent | None = None,
) -> RunResult:
    """Run the selected assets and checks, one after the other, and return what became of them.

    :param partition: a partition's key, or the first and last of a range; assets without
        partitions do not mind.
    :param on_event: told of each event of the run as it happens.
    :raises UsageError: when nothing that can be run is selected.
    :raises KeyboardInterrupt: when the run was interrupted, which Dagster has recorded as its
        failure.
    """
    fail_dead_runs(instance)
    partition = _one_if_one(partition)
    graph = asset_graph(definitions)
    keys = selected_assets(selection, graph) & graph.executable_asset_keys
    checks = selected_checks(selection, graph)
    if not keys and not checks:
        raise UsageError(
            f"{selection} selects nothing to run.",
            next_step="`lakehouse status` lists the tables.",
        )
    job = job_of_all_assets(_with_logger(definitions, on_event))
    of_keys = checks_of_assets(keys, graph)
    given = {**(tags or {}), **Process.current().tags}
    if isinstance(partition, tuple):
        show_range(instance, graph, keys, partition, given)
        given |= range_tags(*partition)
    with next_run_of(instance, keys, None if checks == of_keys else checks):
        ran = job.get_subset(
            asset_selection=keys, asset_check_selection=checks
        ).execute_in_process(
            run_config={"loggers": {"events": {}}},
            instance=instance,
            partition_key=partition if isinstance(partition, str) else None,
            tags=given,
            raise_on_error=False,
        )
    _tell(definitions, instance, ran.run_id)
    if is_interrupted(ran):
        raise KeyboardInterrupt
    ordered = [key for key in graph.toposorted_asset_keys if key in keys]
    return read_result(
        ran, {graph.get(key).assets_def.node_def.name: table_name(key) for key in ordered}
    )


def run_job(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    name: str,
    run_config: Mapping[str, Any],
    on_event: OnEvent | None = None,
) -> RunResult:
    """Run a job in this process, and return what became of it.

    :param on_event: told of each event of the run as it happens.
    :raises KeyboardInterrupt: when the run was interrupted, which Dagster has recorded as its
        failure.
    """
    fail_dead_runs(instance)
    job = job_of_name(_with_logger(definitions, on_event), name)
    ran = job.execute_in_process(
        run_config={**run_config, "loggers": {"events": {}}},
        instance=instance,
        tags=Process.current().tags,
        raise_on_error=False,
    )
    if is_interrupted(ran):
        raise KeyboardInterrupt
    return read_result(ran, {})


def _tell(definitions: dg.Definitions, instance: dg.DagsterInstance, run_id: str) -> None:
    after: AfterRun | None = (definitions.resources or {}).get(AFTER_RUN)
    if after is not None:
        after(instance, run_id)


def _one_if_one(partition: str | tuple[str, str] | None) -> str | tuple[str, str] | None:
    return (
        partition[0]
        if isinstance(partition, tuple) and partition[0] == partition[1]
        else partition
    )


def _with_logger(definitions: dg.Definitions, on_event: OnEvent | None) -> dg.Definitions:
    """Let a run tell its events to the caller, and not to the terminal."""

    @dg.logger
    def events(_: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("lakehouse.run")
        logger.addHandler(_Events(on_event))
        return logger

    return dg.Definitions.merge(definitions, dg.Definitions(loggers={"events": events}))


class _Events(logging.Handler):
    def __init__(self, on_event: OnEvent | None) -> None:
        super().__init__()
        self._on_event = on_event

    def emit(self, record: Any) -> None:
        event = getattr(record, "dagster_event", None)
        if event is not None and self._on_event is not None:
            self._on_event(event)
