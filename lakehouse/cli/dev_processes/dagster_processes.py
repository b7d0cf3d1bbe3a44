"""Dagster's processes of `lakehouse dev`; the code server and the run server are restarted."""

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.restarts import Restarts, say
from lakehouse.cli.dev_processes.ui_address import UIAddress
from lakehouse.errors import LakehouseError
from lakehouse.orchestration.dagster_internals import DAEMON_MODULE
from lakehouse.orchestration.incident_reports import Report, report_firing, report_resolved
from lakehouse.settings import Settings

WEBSERVER, DAEMON = "Dagster's webserver", "Dagster's daemon"
_CODE_SERVER, _RUN_SERVER = "Dagster's code server", "The run server"
_CODE_THREADS = "32"
"""Each sensor that polls an inbox occupies a thread of the code server."""
_RESTART_SECONDS = 5.0
_OPENING_SECONDS = 300.0
_POLL_SECONDS = 0.2
_DIED = Report(
    "code server",
    "Dagster's code server died",
    ("No file is ingested and no sensor runs until `lakehouse dev` has started it again.",),
    ("lakehouse doctor",),
)


class DagsterProcesses:
    """Dagster's processes on a home; the code server and the run server are restarted."""

    def __init__(
        self, settings: Settings, children: Children, folder: Path, *, is_verbose: bool
    ) -> None:
        """Prepare the start; `folder` is a short path for sockets and the workspace file."""
        self._settings, self._children = settings, children
        self._level = "info" if is_verbose else "warning"
        self._code_socket, self._run_socket = folder / "code", folder / "runs"
        self._workspace = folder / "workspace.yaml"
        self._code = Restarts()
        self._checked_at = 0.0

    def start_code(self) -> None:
        """Start the code server and the run server, which take seconds to import the code."""
        os.environ["DAGSTER_IS_DEV_CLI"] = "1"
        os.environ["DAGSTER_GRPC_MAX_WORKERS"] = _CODE_THREADS
        self._start_code_server()
        self._start_run_server()

    def start_services(self, listener: int, address: UIAddress) -> None:
        """Start the daemon and the webserver on a socket, once the code is loaded."""
        # The daemon and the webserver would report an error.
        wait_for(
            _CODE_SERVER, self._children, lambda: _accepts(self._code_socket), _CODE_SERVER
        )
        location = {
            "location_name": self._settings.definitions,
            "socket": str(self._code_socket),
            "host": "localhost",
        }
        # JSON is valid YAML.
        self._workspace.write_text(json.dumps({"load_from": [{"grpc_server": location}]}))
        arguments = ["--workspace", str(self._workspace), "--log-level", self._level]
        self._children.start(DAEMON, [sys.executable, "-m", DAEMON_MODULE, "run", *arguments])
        module = "lakehouse.cli.dev_processes.webserver"
        served = [str(listener), address.host, str(self._workspace)]
        self._children.start(
            WEBSERVER, [sys.executable, "-m", module, *served], inherited=[listener]
        )

    def close(self) -> None:
        """End what starts runs, and the runs; the other children end after them."""
        for name in (WEBSERVER, DAEMON, _RUN_SERVER):
            self._children.end(name)

    def restart_dead(self) -> None:
        """Restart the code server and the run server if they died."""
        if time.monotonic() < self._checked_at + _RESTART_SECONDS:
            return
        self._checked_at = time.monotonic()
        if self._children.ended(_RUN_SERVER) is not None:
            self._children.end(_RUN_SERVER)
            self._start_run_server()
        if self._code.is_paused:
            return
        if self._code.retry_at is not None:
            self._code.retry_at = None
            self._start_code_server()
        else:
            self._check_code_server()

    def _check_code_server(self) -> None:
        """Detect that the process that loads the code died, or that it has loaded the code.

        The code server listens after its child has loaded the code, valid or not, or was killed.
        """
        is_loaded = self._code.answers_since is not None or _accepts(self._code_socket)
        has_exited = self._children.ended(_CODE_SERVER) is not None
        if has_exited or (is_loaded and not self._has_loading_child()):
            self._children.end(_CODE_SERVER)
            again = self._code.plan_next()
            say(f"{_CODE_SERVER} died. It is started again at {again}.")
            report_firing(self._settings, _DIED)
        elif is_loaded and self._code.answers_since is None:
            self._code.answers_since = time.monotonic()
            report_resolved(self._settings, _DIED.key, "It was started again.")

    def _has_loading_child(self) -> bool:
        proxy = psutil.Process(self._children.pid(_CODE_SERVER))
        return any(map(_is_alive, proxy.children()))

    def _start_run_server(self) -> None:
        module = "lakehouse.orchestration.warm_runs.run_server"
        # A run needs a fork, which is not safe on other systems.
        if sys.platform == "linux":
            served = [str(self._settings.dagster_home), str(self._run_socket)]
            self._children.start(_RUN_SERVER, [sys.executable, "-m", module, *served])

    def _start_code_server(self) -> None:
        root = self._settings.project_root
        loaded = ["--module-name", self._settings.definitions]
        loaded += ["--working-directory", str(root)] if root else []
        served = ["--socket", str(self._code_socket), "--log-level", self._level]
        served += ["--location-name", self._settings.definitions]
        served += ["--use-python-environment-entry-point", "--inject-env-vars-from-instance"]
        command = [sys.executable, "-m", "dagster", "code-server", "start", *served, *loaded]
        self._children.start(_CODE_SERVER, command)


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _accepts(path: Path) -> bool:
    """Return whether a process listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def wait_for(
    what: str, children: Children, is_ready: Callable[[], bool], *watched: str
) -> None:
    """Wait until a process is ready; raises LakehouseError if a watched one exits."""
    until = time.monotonic() + _OPENING_SECONDS
    while not is_ready():
        check_running(children, *watched)
        if time.monotonic() > until:
            raise _exited(f"{what} does not answer")
        time.sleep(_POLL_SECONDS)


def check_running(children: Children, *names: str) -> None:
    """Raise LakehouseError if a process exited by itself."""
    for name in names:
        code = children.ended(name)
        if code is not None:
            raise _exited(f"{name} exited by itself (exit status {code})")


def _exited(problem: str) -> LakehouseError:
    return LakehouseError(
        f"{problem}, and `lakehouse dev` exits with it.",
        next_step="Read the messages above, or in the folder `logs` of the home.",
    )
