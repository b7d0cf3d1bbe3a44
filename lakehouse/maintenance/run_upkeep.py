"""Runs upkeep in this process as a Dagster run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dagster as dg

from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.maintenance.upkeep_job import run_config
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import observation_in
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.metadata_keys import plain_values
from lakehouse.orchestration.runs import MakeDefinitions, run_job
from lakehouse.orchestration.upkeep_results import JOB, step_result_of
from lakehouse.settings import Settings


@dataclass(frozen=True)
class MaintainResult:
    """Result of an upkeep run: steps in order, and other errors."""

    steps: Sequence[StepResult]
    success: bool
    messages: Sequence[str]


def maintain(
    project: MakeDefinitions,
    settings: Settings,
    tables: Sequence[str],
    *,
    named_by_user: bool,
    on_step: Callable[[StepResult], object] = lambda _: None,
) -> MaintainResult:
    """Run the due upkeep steps of tables.

    :param on_step: called after each step.
    """
    steps: list[StepResult] = []

    def on_event(event: dg.DagsterEvent) -> None:
        step = _step_of(event)
        if step is not None:
            steps.append(step)
            on_step(step)

    with open_instance(settings) as instance:
        result = run_job(
            project(lambda: settings),
            instance,
            JOB,
            run_config(tables, named_by_user=named_by_user),
            on_event,
        )
    return MaintainResult(steps, result.success, result.messages)


def _step_of(event: dg.DagsterEvent) -> StepResult | None:
    observation = observation_in(event)
    if observation is None:
        return None
    return step_result_of(table_name(observation.asset_key), plain_values(observation.metadata))
