"""A process that has loaded what runs need, and makes a copy of itself for each.

Run as `python -m lakehouse.orchestration.warm_runs.run_server DAGSTER_HOME MODULE [FOLDER]` with a
pipe as its input: at its end it lets its runs end, and ends. It ends as soon as another code
stands in the files, too; whoever started it starts the next one. It has one thread: a copy has
no other, and what another held in the middle of something is held in the copy for ever.
"""

import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
import psutil

from lakehouse.orchestration.warm_runs.connection import (
    address_of,
    is_of_this_user,
    listen,
    receive,
    send,
)
from lakehouse.orchestration.warm_runs.dagster_runs import (
    MODULES_OF_RUNS,
    carry_out,
    is_of_module,
    load_definitions,
    report_crash,
)
from lakehouse.orchestration.warm_runs.loaded_code import LoadedCode
from lakehouse.orchestration.warm_runs.run_launcher import worker_of
from lakehouse.runtime.processes import Process

OUTDATED = 4
"""Its exit status where the code is another, so that the next one is to be started at once."""
HAS_THREADS = 5
"""Its exit status where it cannot be copied, and the next one could not either."""
Task = Callable[[], None]
_LOOK_SECONDS = 0.2
_ASKS_SECONDS = 5.0
_TELLS_SECONDS = 60.0
"""The launcher notes the process of a run in between, for which it may have to wait."""
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""What libraries read as they are loaded, and start threads of their own by."""
_NEEDED = (
    "fsspec.implementations.local",
    "grpc._channel",
    "pandas",
    "pyarrow.acero",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pyiceberg.avro.decoder_fast",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
    "pyspark.sql.connect.functions",
    "pyspark.sql.connect.session",
    "upath.implementations.local",
    "dagster_pyspark",
    *MODULES_OF_RUNS,
    "lakehouse.iceberg.write.write_audit_publish",
    "lakehouse.runtime.spark",
)
"""What nearly each run imports as soon as it is used."""


class RunServer:
    """Waits for launchers that ask for a run, and for the ends of runs."""

    def __init__(self, listener: socket.socket, module: str, code: LoadedCode) -> None:
        self._listener, self._module, self._code = listener, module, code
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._copies: dict[int, Mapping[str, Any] | None] = {}

    def serve(self) -> Task:
        """Make copies of this process until it is to end.

        :returns: in a copy, what it is to do; in this process, how it ends.
        """
        while True:
            sources = self._wait()
            if sys.stdin in sources:
                return self._end()
            task = self._answer() if self._listener in sources else None
            task = task or self._look_after_runs()
            if task is not None:
                return task

    def _wait(self) -> list[object]:
        ready = self._selector.select(_LOOK_SECONDS if self._copies else None)
        return [key.fileobj for key, _ in ready]

    def _answer(self) -> Task | None:
        """Begin the run that a launcher asks for; one that is not answered begins it by
        itself.
        """
        connection, _ = self._listener.accept()
        with connection:
            connection.settimeout(_ASKS_SECONDS)
            request = receive(connection) if is_of_this_user(connection) else None
            if request is None or not is_of_module(request, self._module):
                return None
            if not self._code.is_current:
                return partial(sys.exit, OUTDATED)
            pid = os.fork()
            if pid:
                self._copies[pid] = request
                return None
            return self._copied(partial(_begin, connection.dup(), request))

    def _look_after_runs(self) -> Task | None:
        """Forget runs that ended; one whose process crashed is reported as failed, by another
        copy, since this process keeps nothing open.
        """
        while self._copies:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return None
            request, code = self._copies.pop(pid, None), os.waitstatus_to_exitcode(status)
            if request is None or code == 0:
                continue
            reporting = os.fork()
            if not reporting:
                return self._copied(partial(_report_crash, request, pid, code))
            self._copies[reporting] = None
        return None

    def _copied(self, task: Task) -> Task:
        """Let go, in a copy, of what is the server's."""
        self._selector.close()
        self._listener.close()
        with Path(os.devnull).open(encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if "numpy" in sys.modules:
            # By themselves all copies would draw the same numbers.
            sys.modules["numpy"].random.seed()
        return task

    def _end(self) -> Task:
        self._selector.close()
        self._listener.close()
        while self._copies:
            task = self._look_after_runs()
            if task is not None:
                return task
            time.sleep(_LOOK_SECONDS)
        return partial(sys.exit, 0)


def _report_crash(request: Mapping[str, Any], pid: int, exit_code: int) -> None:
    """Report that the process of a run crashed; of one that ended before the launcher noted it,
    the run was begun in another way.
    """

    def is_its(run: dg.DagsterRun) -> bool:
        worker = worker_of(run)
        return worker is not None and worker.pid == pid

    report_crash(request, exit_code, is_its)


def _begin(connection: socket.socket, request: Mapping[str, Any]) -> None:
    """Carry out a run, once its launcher knows by whom."""

    def is_to_begin() -> bool:
        with connection:
            connection.settimeout(_TELLS_SECONDS)
            is_heard = send(connection, {"process": Process.current().text})
            return is_heard and receive(connection) is not None

    carry_out(request, is_to_begin)


def load(module: str, folder: str | None) -> LoadedCode:
    """Load all that runs need, and start no thread.

    :raises SystemExit: where something started one.
    """
    began_at = time.time()
    for name, value in _NO_THREADS.items():
        os.environ[name] = value
    for needed in _NEEDED:
        # What is not installed is used by no run.
        with suppress(ImportError):
            import_module(needed)
    load_definitions(module, folder)
    for name in _NO_THREADS:
        del os.environ[name]
    threads = psutil.Process().num_threads()
    if threads > 1:
        sys.stderr.write(
            f"Importing {module} started {threads - 1} threads; its runs begin in a Python of"
            " their own each, some seconds later.\n"
        )
        sys.exit(HAS_THREADS)
    code = LoadedCode.since(began_at)
    # What is there now is not looked at again, so that copies share its memory.
    gc.collect()
    gc.freeze()
    return code


def main(dagster_home: str, module: str, folder: str | None = None) -> None:
    """Load the code, and serve; in a copy, carry out a run."""
    # A Ctrl-C is for whoever started this to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = load(module, folder)
    task = RunServer(listen(address_of(Path(dagster_home))), module, code).serve()
    task()


if __name__ == "__main__":
    main(*sys.argv[1:])
