"""The Spark server that `lakehouse dev` keeps warm: started again where it dies, after pauses
that grow.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.output.progress import Progress
from lakehouse.errors import LakehouseError
from lakehouse.orchestration.incident_reports import Report, report_firing, report_resolved
from lakehouse.runtime import spark_server
from lakehouse.runtime.backoff import pause_seconds
from lakehouse.runtime.session_configuration import driver_memory
from lakehouse.runtime.spark_log import open_log
from lakehouse.runtime.spark_server import SparkServer
from lakehouse.settings import Settings

KEY = "spark server"
"""What the thing is called that people are told of."""
_NAME = "The Spark server"
_WARM_UP = "The warm-up of Spark"
_WARM_UP_COMMAND = (sys.executable, "-m", "lakehouse.cli.dev_processes.warm_up")
_GRACE_SECONDS = 3.0
"""It has nothing to keep: what it had not committed is done again, and what it had is there."""
_HANGS = 1_000
"""Stands for no exit status."""
_OUT_OF_MEMORY = 52
"""The status that Spark exits with after an OutOfMemoryError, `SparkExitCode.OOM`."""
_STEADY_SECONDS = 600
"""A server that answered for so long did not die of its start: the next pause is the first one
again.
"""


@dataclass
class WarmSpark:
    """One server at a time, on the same port and with the same token, so that its clients find
    the next one.
    """

    settings: Settings
    children: Children
    say: Callable[[str], None]
    _server: SparkServer | None = None
    _answers_since: float | None = None
    _started_at: float = 0.0
    _retry_at: float | None = None
    _failures: int = 0

    def start(self, progress: Progress) -> None:
        """Start the first one, and wait until it answers.

        :raises SetupError: when it does not start.
        """
        with progress("Starting a Spark server"):
            child, self._server = spark_server.start(self.settings)
            self.children.add(_NAME, child, _GRACE_SECONDS)
            self._warm_up()
            spark_server.wait_for(self.settings, child, self._server)
        self._is_back("Spark was started.")

    def look(self) -> None:
        """Take one step: notice that it died, start it again when the pause is over, or that it
        is back. Where none was started, such as for one elsewhere that SPARK_REMOTE names, or
        for a PySpark that brings no server, there is none to look after.
        """
        if self._server is None:
            return
        if self.children.ended(_WARM_UP) is not None:
            self.children.end(_WARM_UP)
        if self._retry_at is not None:
            if time.monotonic() >= self._retry_at:
                self._start_again()
            return
        code = self.children.ended(_NAME)
        if code is not None:
            self._died(code)
        elif self._answers_since is None and self._server and self._server.answers:
            spark_server.publish(self.settings, self._server)
            self.say("The Spark server is back.")
            self._is_back("Spark was started again, and answers.")
        elif (
            self._answers_since is None
            and time.monotonic() > self._started_at + spark_server.START_SECONDS
        ):
            self._died(_HANGS)

    def close(self) -> None:
        """Let nobody find a server that ends."""
        if self._server:
            spark_server.forget(self.settings, self._server)

    def _is_back(self, how: str) -> None:
        self._answers_since = time.monotonic()
        report_resolved(self.settings, KEY, how)

    def _warm_up(self) -> None:
        """Have it do, once it answers and beside all else, what the first run will ask of it."""
        self.children.end(_WARM_UP)
        if self.settings.is_on_cluster:
            # It writes on this machine, where executors of another see nothing.
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
        self._retry_at, self._started_at = None, time.monotonic()
        try:
            child, self._server = spark_server.start(self.settings, self._server)
        except (LakehouseError, OSError) as error:
            self._pause(f"could not be started: {error}")
            return
        self.children.add(_NAME, child, _GRACE_SECONDS)
        self._warm_up()

    def _died(self, code: int) -> None:
        self.children.end(_NAME)
        self.close()
        was_steady = self._answers_since is not None
        if was_steady and time.monotonic() - (self._answers_since or 0.0) > _STEADY_SECONDS:
            self._failures = 0
        self._answers_since = None
        what = f"{'ended by itself' if was_steady else 'did not start'} ({how_it_ended(code)})"
        memory = driver_memory(spark_server.settings_of_server(self.settings))
        self._pause(what, _advice(code, memory))

    def _pause(self, what: str, advice: str = "") -> None:
        self._failures += 1
        seconds = pause_seconds(self._failures)
        self._retry_at = time.monotonic() + seconds
        again = f"{datetime.now(UTC) + timedelta(seconds=seconds):%H:%M:%S} UTC"
        self.say(
            f"The Spark server {what}. It is started again at {again}; the UI, sensors and"
            " alerts go on."
        )
        report_firing(self.settings, _report(what, again, advice))


def how_it_ended(code: int) -> str:
    """Say what an exit status means: a process that lacked memory is killed by the machine, and
    says nothing.
    """
    if code == _HANGS:
        return f"no answer in {spark_server.START_SECONDS:.0f} s"
    if code == _OUT_OF_MEMORY:
        return "out of memory: its Java heap was full"
    if _signal(code) == signal.SIGKILL:
        return "killed, as by lack of memory"
    return f"killed by signal {_signal(code)}" if code < 0 else f"exit status {code}"


def _signal(code: int) -> int:
    return -code if code < 0 else code - 128


def _advice(code: int, memory: str) -> str:
    """Say which way memory is to be changed: Spark had too little of its own, or took too much
    of the machine's.
    """
    if code == _OUT_OF_MEMORY:
        return f" Set LAKEHOUSE_SPARK_MEMORY to more than {memory}, or give Spark less at once."
    if _signal(code) == signal.SIGKILL:
        return (
            " Where the machine lacked memory, set LAKEHOUSE_SPARK_MEMORY to less than"
            f" {memory}."
        )
    return ""


def _report(what: str, again: str, advice: str) -> Report:
    return Report(
        KEY,
        "Spark died",
        (
            f"The Spark server of `lakehouse dev` {what}.",
            (
                f"It is started again at {again}. The UI, sensors and alerts go on; runs that"
                f" were going on fail, and are tried again.{advice}"
            ),
        ),
        ("lakehouse doctor",),
    )
