"""Process groups that end together, also when the command that started them is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

GRACE_SECONDS = 15.0


class Children:
    """Process groups of a command by name; they are ended in reverse order of their start."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}

    def __enter__(self) -> Self:
        """Begin to watch over what is started."""
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "lakehouse.cli.dev_processes.watchdog"],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End all of them."""
        for name in reversed(list(self._running)):
            self.end(name)
        assert self._watchdog.stdin is not None
        self._watchdog.kill()
        self._watchdog.wait()
        self._watchdog.stdin.close()

    def start(self, name: str, command: Sequence[str], inherited: Sequence[int] = ()) -> None:
        """Start a process in its own group; `inherited` are its file descriptors."""
        child = subprocess.Popen(command, start_new_session=True, pass_fds=inherited)
        self.add(name, child)

    def add(
        self, name: str, child: "subprocess.Popen[bytes]", grace_seconds: float = GRACE_SECONDS
    ) -> None:
        """Watch a group leader; it has `grace_seconds` to stop after SIGINT."""
        self._running[name] = child, grace_seconds
        self._notify_watchdog(child.pid)

    def ended(self, name: str) -> int | None:
        """Return the exit code of one that ended; None where it runs, or there is none."""
        if name not in self._running:
            return None
        child, _ = self._running[name]
        return child.poll()

    def pid(self, name: str) -> int:
        """Return the process id of a child."""
        return self._running[name][0].pid

    def end(self, name: str) -> None:
        """End one of them, where it is there, with what is left of its group, and forget it."""
        if name in self._running:
            child, grace_seconds = self._running.pop(name)
            _end(child, grace_seconds)
            self._notify_watchdog(-child.pid)

    def _notify_watchdog(self, number: int) -> None:
        assert self._watchdog.stdin is not None
        # The watchdog may have been killed.
        with suppress(BrokenPipeError):
            self._watchdog.stdin.write(f"{number}\n".encode())
            self._watchdog.stdin.flush()


def _end(child: "subprocess.Popen[bytes]", grace_seconds: float) -> None:
    """Stop a child, which stops its own children, then kill the rest of its group."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
