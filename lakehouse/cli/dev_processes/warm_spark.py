"""The warm Spark server of `lakehouse dev`, started again when it dies."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.restarts import Restarts
from lakehouse.cli.output.progress import Progress
from lakehouse.errors import LakehouseError
from lakehouse.orchestration.incident_reports import Report, report_firing, report_resolved
from lakehouse.settings import Settings
from lakehouse.spark import spark_server
from lakehouse.spark.spark_folders import open_log
from lakehouse.spark.spark_server import SparkServer

KEY = "spark server"
"""Key of its incident."""
_NAME = "The Spark server"
_WARM_UP = "The warm-up of Spark"
_WARM_UP_COMMAND = (sys.executable, "-m", "lakehouse.cli.dev_processes.warm_up")
_GRACE_SECONDS = 3.0
"""Short, since uncommitted work is repeated."""
_OUT_OF_MEMORY = 52
"""The status that Spark exits with after an OutOfMemoryError, `SparkExitCode.OOM`."""


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
