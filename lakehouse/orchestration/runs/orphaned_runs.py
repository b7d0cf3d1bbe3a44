"""Runs whose process does not exist any more: Dagster would count them as started forever."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.spark.processes import Process

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun


@dataclass(frozen=True)
class OrphanedRun:
    """A run that was marked as failed because its process does not exist."""

    run_id: str
    job_name: str
    message: str


def fail_orphaned_runs(instance: "DagsterInstance") -> list[OrphanedRun]:
    """Mark runs of this host without a process as failed, and free their concurrency slots."""
    from dagster import DagsterRunStatus, RunsFilter

    from lakehouse.orchestration.dagster_internals import fail_run, free_slots

    status = DagsterRunStatus
    working = [status.NOT_STARTED, status.STARTING, status.STARTED, status.CANCELING]
    records = instance.get_run_records(RunsFilter(statuses=working))
    runs = [record.dagster_run for record in records]
    orphaned = [(run, message) for run in runs if (message := _failure_message(instance, run))]
    for run, message in orphaned:
        fail_run(instance, run, message)
        free_slots(instance, run.run_id)
    return [OrphanedRun(run.run_id, run.job_name, message) for run, message in orphaned]


def _failure_message(instance: "DagsterInstance", run: "DagsterRun") -> str:
    """Return the failure message of a run without a process; empty if it runs or is unknown."""
    from lakehouse.orchestration.dagster_internals import is_of_one_host

    # A re-executed run has the tags of its parent run.
    process = None if run.parent_run_id else Process.from_tags(run.tags)
    if process is not None:
        return "" if process.is_alive else _message(process.pid)
    # Runs started by Dagster have no host tag.
    worker = worker_of(instance, run.run_id) if is_of_one_host(instance) else None
    return _message(worker.pid) if worker and not worker.is_alive else ""


def worker_of(instance: "DagsterInstance", run_id: str) -> Process | None:
    """Return the process that Dagster recorded at the start of a run (UI, schedule, sensor)."""
    from dagster import DagsterEventType

    from lakehouse.orchestration.dagster_internals import events_of_run

    for entry in events_of_run(instance, run_id, DagsterEventType.ENGINE_EVENT, limit=20):
        event = entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event else None
        if pid is not None:
            return Process.at_time(int(str(pid.value)), entry.timestamp)
    return None


def _message(pid: int) -> str:
    return (
        f"The process of this run (pid {pid}) is gone: it was killed, or its machine was"
        " restarted. Nothing that it did not publish is visible; run it again."
    )
