"""Runs Dagster assets and jobs in this process, on the instance of the UI."""

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
from lakehouse.orchestration.partitions.partition_bounds import range_tags
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.orchestration.runs.run_result import RunResult, is_interrupted, read_result
from lakehouse.settings import Settings
from lakehouse.spark.processes import Process

AFTER_RUN = "after_run"
"""Resource key of a callback that runs after each run of a command."""

_STATUS = dg.DagsterRunStatus
UNFINISHED = [_STATUS.QUEUED, _STATUS.STARTING, _STATUS.STARTED, _STATUS.CANCELING]
"""Unfinished runs: a sensor waits for them. NOT_STARTED is excluded, since a run keeps this
status forever if the daemon crashes before it queues the run.
"""

OnEvent = Callable[[dg.DagsterEvent], None]
AfterRun = Callable[[dg.DagsterInstance, str], object]
MakeDefinitions = Callable[[Callable[[], Settings]], dg.Definitions]
"""Creates the definitions of a project from a function that reads the settings."""


def materialize(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    selection: dg.AssetSelection,
    *,
    partition: str | tuple[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    on_event: OnEvent | None = None,
) -> RunResult:
    """Run the selected assets and checks sequentially and return the results.

    :param partition: a key, or the first and last key; unpartitioned assets ignore it.
    :param on_event: called for each event of the run.
    :raises UsageError: the selection contains nothing executable.
    :raises KeyboardInterrupt: the run was interrupted; Dagster has recorded it as failed.
    """
    fail_orphaned_runs(instance)
    if isinstance(partition, tuple) and partition[0] == partition[1]:
        partition = partition[0]
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
    _notify(definitions, instance, ran.run_id)
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
    """Run a job in this process and return the result.

    :param on_event: called for each event of the run.
    :raises KeyboardInterrupt: the run was interrupted; Dagster has recorded it as failed.
    """
    fail_orphaned_runs(instance)
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


def _notify(definitions: dg.Definitions, instance: dg.DagsterInstance, run_id: str) -> None:
    after: AfterRun | None = (definitions.resources or {}).get(AFTER_RUN)
    if after is not None:
        after(instance, run_id)


def _with_logger(definitions: dg.Definitions, on_event: OnEvent | None) -> dg.Definitions:
    """Send the events of a run to the caller instead of the terminal."""

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
