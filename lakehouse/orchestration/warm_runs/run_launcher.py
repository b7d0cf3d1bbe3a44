"""The run launcher that `dagster.yaml` names."""

import os
import signal
from contextlib import suppress
from multiprocessing.connection import Client
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.orchestration.dagster_internals import (
    execute_run_arguments,
    report_canceling,
    worker_health,
)
from lakehouse.orchestration.runs.orphaned_runs import worker_of

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import (
        CheckRunHealthResult,
        LaunchRunContext,
    )


_ANSWER_SECONDS = 20.0


def address_file(dagster_home: Path) -> Path:
    """Return the file that names the run server's socket; paths of sockets must be short."""
    return dagster_home / "run-server"


class WarmRunLauncher(dg.DefaultRunLauncher):
    """Starts a run in a fork of the run server, or like Dagster's default launcher without one."""

    def launch_run(self, context: "LaunchRunContext") -> None:
        """Start a run.

        :raises DagsterLaunchFailedError: if it does not start.
        """
        arguments = execute_run_arguments(self._instance, context.dagster_run)
        if not (arguments and self._fork(arguments)):
            super().launch_run(context)

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run; return whether it was running."""
        run = self._instance.get_run_by_id(run_id)
        worker = worker_of(self._instance, run_id)
        if not (run and worker and worker.is_of_this_host and worker.is_alive):
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        if run.is_finished:
            return False
        report_canceling(self._instance, run)
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGINT)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Run monitoring can ask for the state of a run's process."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> "CheckRunHealthResult":
        """Report whether the process of a run is alive."""
        worker = worker_of(self._instance, run.run_id)
        if worker is None or worker.is_alive:
            return worker_health("")
        return worker_health(f"Its process (pid {worker.pid}) is gone.")

    def _fork(self, arguments: str) -> bool:
        """Let the run server execute a run; return whether it does."""
        try:
            address = address_file(Path(self._instance.root_directory)).read_text()
            with Client(address) as connection:
                connection.send(arguments)
                return connection.poll(_ANSWER_SECONDS) and bool(connection.recv())
        except (OSError, EOFError):
            return False
