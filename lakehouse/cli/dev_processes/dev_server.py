"""A warm Spark and Dagster's processes, as children of the command that end with it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import psutil

from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.ui_address import UIAddress, leave_note, listen, remove_note
from lakehouse.cli.output.progress import Progress
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.orchestration.backoff import pause_seconds
from lakehouse.orchestration.dagster_internals import DAEMON_MODULE
from lakehouse.orchestration.incident_reports import Report, report_firing, report_resolved
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.settings import Settings
from lakehouse.spark import spark_server
from lakehouse.spark.spark_folders import open_log
from lakehouse.spark.spark_server import SparkServer
from lakehouse.storage.file_lock import file_lock

KEY = "spark server"
"""Key of its incident."""
_NAME = "The Spark server"
_WARM_UP = "The warm-up of Spark"
_WARM_UP_COMMAND = (sys.executable, "-m", "lakehouse.cli.dev_processes.warm_up")
_GRACE_SECONDS = 3.0
"""Short, since uncommitted work is repeated."""
_OUT_OF_MEMORY = 52
"""The status that Spark exits with after an OutOfMemoryError, `SparkExitCode.OOM`."""
_STEADY_SECONDS = 600
"""After this time, a failure is not one of the start, and the pauses begin again."""


@dataclass
class Restarts:
    """When a process is started again: after pauses that grow until it works for long."""

    answers_since: float | None = None
    """None while it is down or starts."""
    retry_at: float | None = None
    """None while it runs."""
    _failures: int = 0

    def plan_next(self) -> str:
        """Plan the next start after a failure, and return its time for messages."""
        since = self.answers_since
        if since is not None and time.monotonic() - since > _STEADY_SECONDS:
            self._failures = 0
        self._failures += 1
        seconds = pause_seconds(self._failures)
        self.answers_since, self.retry_at = None, time.monotonic() + seconds
        return f"{datetime.now(UTC) + timedelta(seconds=seconds):%H:%M:%S} UTC"

    @property
    def is_paused(self) -> bool:
        """Whether the next start must still wait."""
        return self.retry_at is not None and time.monotonic() < self.retry_at


@dataclass
class WarmSpark:
    """One server at a time, on the same port and with the same token for its clients."""

    settings: Settings
    children: Children
    say: Callable[[str], None]
    _server: SparkServer | None = None
    _started_at: float = 0.0
    _restarts: Restarts = field(default_factory=Restarts)

    def start(self, progress: Progress) -> None:
        """Start the first server, and wait until it answers; raises SetupError."""
        with progress("Starting a Spark server"):
            child, self._server = spark_server.start(self.settings)
            self.children.add(_NAME, child, _GRACE_SECONDS)
            self._warm_up()
            spark_server.wait_for(self.settings, child, self._server)
        self._is_back("Spark was started.")

    def look(self) -> None:
        """Detect an exit, restart after the pause, or detect that the server answers."""
        if self._server is None:
            return
        if self.children.ended(_WARM_UP) is not None:
            self.children.end(_WARM_UP)
        if self._restarts.is_paused:
            return
        if self._restarts.retry_at is not None:
            self._start_again()
            return
        code = self.children.ended(_NAME)
        if code is not None:
            self._died(code)
        elif self._restarts.answers_since is not None:
            return
        elif self._server.answers:
            spark_server.publish(self.settings, self._server)
            self.say("The Spark server is back.")
            self._is_back("Spark was started again, and answers.")
        elif time.monotonic() > self._started_at + spark_server.START_SECONDS:
            self._died(None)

    def close(self) -> None:
        """Remove the note about the server."""
        if self._server:
            spark_server.forget(self.settings, self._server)

    def _is_back(self, how: str) -> None:
        self._restarts.answers_since = time.monotonic()
        report_resolved(self.settings, KEY, how)

    def _warm_up(self) -> None:
        """Start a process that writes small tables once the server answers."""
        self.children.end(_WARM_UP)
        if self.settings.is_on_cluster:
            # It writes to this machine's disk, which executors do not see.
            return
        with open_log(self.settings) as output:
            child = subprocess.Popen(
                _WARM_UP_COMMAND,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.children.add(_WARM_UP, child, _GRACE_SECONDS)

    def _start_again(self) -> None:
        self._restarts.retry_at, self._started_at = None, time.monotonic()
        try:
            child, self._server = spark_server.start(self.settings, self._server)
        except (LakehouseError, OSError) as error:
            self._pause(f"could not be started: {error}")
            return
        self.children.add(_NAME, child, _GRACE_SECONDS)
        self._warm_up()

    def _died(self, code: int | None) -> None:
        self.children.end(_NAME)
        self.close()
        what = "exited" if self._restarts.answers_since is not None else "did not start"
        self._pause(f"{what} ({describe_exit(code)})")

    def _pause(self, what: str) -> None:
        again = self._restarts.plan_next()
        self.say(
            f"The Spark server {what}. It is started again at {again}; the UI, sensors and"
            " alerts continue."
        )
        lines = (
            f"The Spark server of `lakehouse dev` {what}.",
            f"It is started again at {again}. Running runs fail, and are retried.",
        )
        report_firing(self.settings, Report(KEY, "Spark died", lines, ("lakehouse doctor",)))


def describe_exit(code: int | None) -> str:
    """Return the meaning of an exit status, with the setting to change if memory was short."""
    if code is None:
        return f"no answer in {spark_server.START_SECONDS:.0f} s"
    if code == _OUT_OF_MEMORY:
        return "out of memory: set LAKEHOUSE_SPARK_MEMORY to more"
    # A shell adds 128 to the number of a signal.
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "killed: if the machine lacked memory, set LAKEHOUSE_SPARK_MEMORY to less"
    return f"exit status {code}"


WEBSERVER, DAEMON = "Dagster's webserver", "Dagster's daemon"
_CODE_SERVER, _RUN_SERVER = "Dagster's code server", "The run server"
_CODE_THREADS = "32"
"""Each sensor that polls an inbox occupies a thread of the code server."""
_RESTART_SECONDS = 5.0
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
        _wait_for(
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
            _say(f"{_CODE_SERVER} died. It is started again at {again}.")
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


_CHECK_SECONDS = 0.5
_OPENING_SECONDS = 300.0


def serve(
    settings: Settings,
    address: UIAddress,
    progress: Progress,
    *,
    is_fixed: bool,
    is_verbose: bool = False,
) -> None:
    """Run the UI until it is stopped; restart Spark, the code server and the run server.

    :param is_fixed: whether only this port will do; otherwise the next free one is used.
    :param is_verbose: whether Dagster's full log is printed, and not only warnings and errors.
    :raises UsageError: if the port is taken, or another `dev` runs on this home.
    :raises LakehouseError: if Dagster's daemon or webserver exits.
    :raises KeyboardInterrupt: at Ctrl-C and SIGTERM.
    """
    with (
        _alone(settings),
        _signals(),
        TemporaryDirectory(prefix="lakehouse-dev-") as folder,
        Children() as children,
    ):
        listener, address = listen(address.host, address.port, is_fixed=is_fixed)
        with open_instance(settings) as instance:
            fail_orphaned_runs(instance)
        url = settings.ui_url or address.url
        # Children find the home in any working directory, and alerts link to this UI.
        os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
        os.environ["LAKEHOUSE_HOME"] = str(settings.home)
        os.environ["LAKEHOUSE_DEFINITIONS"] = settings.definitions
        os.environ["LAKEHOUSE_UI_URL"] = url
        spark = WarmSpark(settings, children, _say)
        dagster = DagsterProcesses(settings, children, Path(folder), is_verbose=is_verbose)
        try:
            dagster.start_code()
            # PySpark 3.5 has no Connect server: there each run starts a Spark of its own.
            if not settings.spark_remote and not is_spark_3():
                spark.start(progress)
            with listener:
                dagster.start_services(listener.fileno(), address)
            _wait_for(WEBSERVER, children, lambda: address.is_served, DAEMON, WEBSERVER)
            leave_note(settings, url)
            click.echo(
                f"The Dagster UI is open at {address.url}, on {settings.home}. Ctrl-C ends it.",
                err=True,
            )
            while True:
                _check_running(children, DAEMON, WEBSERVER)
                spark.look()
                dagster.restart_dead()
                time.sleep(_CHECK_SECONDS)
        finally:
            remove_note(settings)
            dagster.close()
            spark.close()


def _wait_for(
    what: str, children: Children, is_ready: Callable[[], bool], *watched: str
) -> None:
    """Wait until a process is ready; raises LakehouseError if a watched one exits."""
    until = time.monotonic() + _OPENING_SECONDS
    while not is_ready():
        _check_running(children, *watched)
        if time.monotonic() > until:
            raise _exited(f"{what} does not answer")
        time.sleep(_POLL_SECONDS)


def _check_running(children: Children, *names: str) -> None:
    for name in names:
        code = children.ended(name)
        if code is not None:
            raise _exited(f"{name} exited by itself (exit status {code})")


def _exited(problem: str) -> LakehouseError:
    return LakehouseError(
        f"{problem}, and `lakehouse dev` exits with it.",
        next_step="Read the messages above, or in the folder `logs` of the home.",
    )


def _say(text: str) -> None:
    click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {text}", err=True)


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    settings.make_home()
    busy = UsageError(
        f"`lakehouse dev` runs already on {settings.home}; expected one for each home.",
        next_step="Use that one, stop it with Ctrl-C, or set LAKEHOUSE_HOME to another folder.",
    )
    with file_lock(settings.home / "dev.lock", 0, busy):
        yield


@contextmanager
def _signals() -> Iterator[None]:
    """End at SIGTERM as at Ctrl-C; children do not inherit an ignored Ctrl-C, which ends them."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
