"""Measures wall time of a command, and CPU time including its child processes.

Run as `python -m benchmarks.process_times COMMAND…`; prints `WALL CPU` in seconds. A JVM can outlive
its command: on Linux, this process adopts orphaned processes and waits for them.
"""

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36
"""Constant of `prctl(2)`."""
_OF_CHILDREN = 4
"""psutil's process times start with user and system, also of finished children."""


@dataclass(frozen=True)
class Times:
    """Wall and CPU seconds of a command."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s, {self.cpu:.2f} s of the processor"


def times_of(
    command: Sequence[str], env: Mapping[str, str], folder: Path | None = None
) -> Times:
    """Run a command in a separate process and measure it.

    :param folder: working directory; default: the current one.
    :raises AssertionError: the command failed; contains its output.
    """
    process = subprocess.run(
        [sys.executable, Path(__file__), *command],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    wall, cpu = process.stdout.splitlines()[-1].split()
    return Times(float(wall), float(cpu))


def processor_seconds(pid: int) -> float:
    """Return the CPU seconds of a running process and its descendants."""
    process = psutil.Process(pid)
    seconds = 0.0
    for member in [process, *process.children(recursive=True)]:
        # A finished process counts for its parent.
        with suppress(psutil.NoSuchProcess):
            seconds += sum(member.cpu_times()[:_OF_CHILDREN])
    return seconds


def main() -> None:
    """Run the command of the arguments."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    started = time.perf_counter()
    code = subprocess.run(sys.argv[1:], check=False).returncode
    wall = time.perf_counter() - started
    while _waited_for_child():
        pass
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{wall:.3f} {usage.ru_utime + usage.ru_stime:.3f}")  # noqa: T201
    sys.exit(code)


def _waited_for_child() -> bool:
    try:
        os.wait()
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    main()
