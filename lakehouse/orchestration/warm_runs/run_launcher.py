"""The launcher of runs that `lakehouse dev` gives to Dagster."""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import dagster as dg

from lakehouse.orchestration.dagster_internals import add_run_tags
from lakehouse.orchestration.warm_runs import dagster_runs
from lakehouse.orchestration.warm_runs.connection import GO, connect, receive, send
from lakehouse.orchestration.warm_runs.dagster_runs import (
    CheckRunHealthResult,
    ConfigurableClassData,
    LaunchRunContext,
)
from lakehouse.runtime.processes import Process
from lakehouse.runtime.run_tags import readable_tags

WORKER_TAG = "lakehouse/worker"
"""Tag of a run that a copy of the server carries out: its id, and the process of the copy."""
_ANSWERS_SECONDS = 20.0
"""A copy answers in a tenth of a second, and on a busy machine later."""


class WarmRunLauncher(dg.DefaultRunLauncher):
    """Lets a run begin in a copy of a process that has loaded the code, see `run_server`; where
    none can be had, as Dagster's own launcher does.

    :param address: the path of the server's socket.
    :param module: the module of the definitions that the server has loaded.
    """

    def __init__(
        self, address: str, module: str, inst_data: ConfigurableClassData | None = None
    ) -> None:
        super().__init__(inst_data)
        self._address, self._module = address, module

    @classmethod
    def config_type(cls) -> Any:
        """Return what is configured."""
        return {"address": str, "module": str}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> "WarmRunLauncher":
        """Make one as it is configured."""
        return cls(config_value["address"], config_value["module"], inst_data)

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
        if run is None or worker is None or not worker.is_alive:
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
        if not dagster_runs.is_of_module(run, self._module):
            return False
        try:
            connection = connect(self._address, _ANSWERS_SECONDS)
        except OSError:
            return False
        with connection:
            send(connection, dagster_runs.request_of_run(self._instance, run))
            answer = receive(connection)
            if answer is None:
                return False
            worker = {WORKER_TAG: f"{run.run_id} {answer['process']}"}
            add_run_tags(self._instance, run.run_id, worker)
            return send(connection, GO)


def worker_of(run: dg.DagsterRun) -> Process | None:
    """Return the copy of the server that carries a run out; None where Dagster's own launcher
    began it. A run that is executed again has the tags of the one before it, too.
    """
    run_id, _, process = readable_tags(run.tags).get(WORKER_TAG, "").partition(" ")
    return Process.from_text(process) if run_id == run.run_id else None
