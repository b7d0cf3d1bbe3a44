"""Runs whose process is gone: Dagster keeps them as started for ever, and holds others back for
them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.runtime.processes import Process

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun


@dataclass(frozen=True)
class DeadRun:
    """A run that was reported as failed, since nothing works on it any more."""

    run_id: str
    job_name: str
    message: str


def fail_dead_runs(instance: "DagsterInstance") -> list[DeadRun]:
    """Report as failed the runs of this host whose process is gone, and free what they hold."""
    from dagster import DagsterRunStatus, RunsFilter

    from lakehouse.orchestration.dagster_internals import fail_run, free_slots

    status = DagsterRunStatus
    working = [status.NOT_STARTED, status.STARTING, status.STARTED, status.CANCELING]
    records = instance.get_run_records(RunsFilter(statuses=working))
    runs = [record.dagster_run for record in records]
    dead = [(run, gone) for run in runs if (gone := _gone(instance, run))]
    for run, gone in dead:
        fail_run(instance, run, gone)
        free_slots(instance, run.run_id)
    return [DeadRun(run.run_id, run.job_name, gone) for run, gone in dead]


def _gone(instance: "DagsterInstance", run: "DagsterRun") -> str:
    """Say what became of the process of a run; nothing where it works, or where this host
    cannot know.
    """
    from lakehouse.orchestration.dagster_internals import is_of_one_host

    # A run that the UI executes again has the tags of the one before it.
    process = None if run.parent_run_id else Process.from_tags(run.tags)
    if process is not None:
        return "" if process.is_alive else _message(process.pid)
    # Dagster's own runs name no host.
    worker = worker_of(instance, run.run_id) if is_of_one_host(instance) else None
    return _message(worker.pid) if worker and not worker.is_alive else ""


def worker_of(instance: "DagsterInstance", run_id: str) -> Process | None:
    """Return the process that Dagster noted when it started the run for the UI, a schedule or a
    sensor.
    """
    from dagster import DagsterEventType

    from lakehouse.orchestration.dagster_internals import events_of_run

    for entry in events_of_run(instance, run_id, DagsterEventType.ENGINE_EVENT, limit=20):
        event = entry.dagster_event
        noted = event.engine_event_data.metadata.get("pid") if event else None
        if noted is not None:
            return Process.at_time(int(str(noted.value)), entry.timestamp)
    return None


def _message(pid: int) -> str:
    return (
        f"The process of this run (pid {pid}) is gone: it was killed, or its machine was"
        " restarted. Nothing that it did not publish is visible; run it again."
    )
