"""The launcher of runs that `dagster.yaml` names."""

import os
import signal
from contextlib import suppress

import dagster as dg

from lakehouse.orchestration.dagster_internals import add_run_tags
from lakehouse.orchestration.warm_runs import dagster_runs
from lakehouse.orchestration.warm_runs.connection import (
    GO,
    address_of,
    connect,
    receive,
    send,
)
from lakehouse.orchestration.warm_runs.dagster_runs import (
    CheckRunHealthResult,
    LaunchRunContext,
)
from lakehouse.runtime.processes import Process
from lakehouse.runtime.run_tags import HIDDEN_PREFIX

WORKER_TAG = f"{HIDDEN_PREFIX}worker"
"""Tag of a run that a copy of the server carries out: its id, and the process of the copy."""
_ANSWERS_SECONDS = 20.0
"""A copy answers in a tenth of a second, and on a busy machine later."""


class WarmRunLauncher(dg.DefaultRunLauncher):
    """Lets a run begin in a copy of a process that has loaded the code, see `run_server`; where
    none can be had, as Dagster's own launcher does.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Let a run begin.

        :raises DagsterLaunchFailedError: when it does not.
        """
        if not self._launch_warm(context.dagster_run):
            super().launch_run(context)

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run; whether something of it was there to be interrupted."""
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        worker = worker_of(run) if run and not run.is_finished else None
        is_here = worker is not None and worker.is_of_this_host and worker.is_alive
        if run is None or worker is None or not is_here:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        dagster_runs.note_cancelling(self._instance, run)
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGINT)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Dagster may ask whether the process of a run is there."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Say whether the process of a run is there; of one that Dagster's own launcher began,
        its code server knows.
        """
        worker = worker_of(run)
        if worker is None or worker.is_alive:
            return dagster_runs.worker_is_there()
        return dagster_runs.worker_is_gone(f"Its process (pid {worker.pid}) is gone.")

    def _launch_warm(self, run: dg.DagsterRun) -> bool:
        """Ask the server for a copy of it that carries the run out; whether it does."""
        request = dagster_runs.request_of_run(self._instance, run)
        connection = connect(address_of(dagster_runs.home_of(self._instance)), _ANSWERS_SECONDS)
        if request is None or connection is None:
            return False
        with connection:
            send(connection, request)
            answer = receive(connection)
            if answer is None:
                return False
            worker = {WORKER_TAG: f"{run.run_id} {answer['process']}"}
            add_run_tags(self._instance, run.run_id, worker)
            if send(connection, GO):
                return True
        # It is gone, and not to be taken for the process of a run that begins otherwise.
        add_run_tags(self._instance, run.run_id, {WORKER_TAG: ""})
        return False


def worker_of(run: dg.DagsterRun) -> Process | None:
    """Return the copy of the server that carries a run out; None where Dagster's own launcher
    began it. A run that is executed again has the tags of the one before it, too.
    """
    run_id, _, process = run.tags.get(WORKER_TAG, "").partition(" ")
    return Process.from_text(process) if run_id == run.run_id else None
