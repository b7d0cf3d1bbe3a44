"""Time a command: until it ends, and the processor's time of it and all that it started.

Run as `python -m benchmarks.process_times COMMAND…`; prints `WALL CPU` in seconds. A JVM may
outlive the command that started it, and its time would be lost: on Linux this process adopts
what is orphaned, and waits for it.
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
"""Of `prctl(2)`."""
_OF_CHILDREN = 4
"""psutil's times of a process begin with user, system and the same two of ended children."""


@dataclass(frozen=True)
class Times:
    """Seconds of a command: until it ends, and of the processor."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s, {self.cpu:.2f} s of the processor"


def times_of(
    command: Sequence[str], env: Mapping[str, str], folder: Path | None = None
) -> Times:
    """Run a command in a process that does nothing else, and time it.

    :param folder: where it is run; here, if left out.
    :raises AssertionError: when it failed; holds what it said.
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
    """Return what a process that runs, and all below it, have taken of the processor so far."""
    process = psutil.Process(pid)
    seconds = 0.0
    for member in [process, *process.children(recursive=True)]:
        # It may have ended meanwhile, and counts with its parent then.
        with suppress(psutil.NoSuchProcess):
            seconds += sum(member.cpu_times()[:_OF_CHILDREN])
    return seconds


def main() -> None:
    """Run the command of this process's arguments."""
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
