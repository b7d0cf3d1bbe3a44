"""Processes that live and die together: when one ends, or the command that started them, so do the others."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

GRACE_SECONDS = 15.0
_PAUSE_SECONDS = 0.3


class Children:
    """Process groups of a command, by name; the last one that was started is the first to be ended."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        """Begin to watch over what is started."""
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "lakehouse.cli.watchdog"], stdin=subprocess.PIPE, start_new_session=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of them."""
        for child in reversed(self._running.values()):
            _end(child)
        assert self._watchdog.stdin is not None
        self._watchdog.kill()
        self._watchdog.wait()
        self._watchdog.stdin.close()

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a process in a group of its own."""
        self.add(name, subprocess.Popen(command, start_new_session=True))

    def add(self, name: str, child: "subprocess.Popen[bytes]") -> None:
        """Watch over a process that leads a group of its own."""
        self._running[name] = child
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{child.pid}\n".encode())
        self._watchdog.stdin.flush()

    def wait(self) -> tuple[str, int]:
        """Wait until one of them ends, and return its name and exit code."""
        while True:
            for name, child in self._running.items():
                code = child.poll()
                if code is not None:
                    return name, code
            time.sleep(_PAUSE_SECONDS)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End a child's whole group: the child first, so that it can end its own, then whatever is left of it."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
