"""The server of runs as a process that is started again where it ends."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from lakehouse.orchestration.warm_runs.run_server import HAS_THREADS, OUTDATED
from lakehouse.runtime.backoff import pause_seconds

_SERVER = "lakehouse.orchestration.warm_runs.run_server"


@contextmanager
def run_server(
    dagster_home: Path, module: str, working_directory: str | None
) -> Iterator[None]:
    """Keep a server of runs going for an instance of Dagster; at the end, wait for the runs that
    it began. There is none on systems other than Linux, where a process cannot be copied without
    danger.

    :param module: the module of the definitions.
    """
    if sys.platform != "linux":
        yield
        return
    is_to_end = Event()
    # Whoever reads it ends with this process, however that ends.
    read, write = os.pipe()
    where = [working_directory] if working_directory else []
    command = [sys.executable, "-m", _SERVER, str(dagster_home), module, *where]
    keeper = Thread(target=_keep, args=[command, read, is_to_end], daemon=True)
    keeper.start()
    try:
        yield
    finally:
        is_to_end.set()
        os.close(write)
        keeper.join()
        os.close(read)


def _keep(command: Sequence[str], read: int, is_to_end: Event) -> None:
    """Start a server again and again, until that is to end, or the code cannot be served."""
    failures = 0
    while not is_to_end.is_set():
        status = subprocess.run(command, stdin=read, check=False).returncode
        if status == HAS_THREADS:
            return
        failures = 0 if status == OUTDATED else failures + 1
        if failures > 1:
            is_to_end.wait(pause_seconds(failures - 1))
