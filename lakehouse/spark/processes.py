"""The process of a run, to detect runs whose process has exited, and tags of runs."""

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

HIDDEN_PREFIX = ".dagster/lakehouse_"
"""Dagster's UI shows no tag whose key starts with `.dagster/`."""


PROCESS_TAG = f"{HIDDEN_PREFIX}process"
"""Run tag of a command: host, process id and start time."""
_SAME_START_SECONDS = 2.0


@dataclass(frozen=True)
class Process:
    """A process of a host; `started_at` distinguishes it from a later one with the same id."""

    host: str
    pid: int
    started_at: float

    @classmethod
    def current(cls) -> "Process":
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), started_at(os.getpid()) or 0.0)

    @classmethod
    def at_time(cls, pid: int, at: float) -> "Process":
        """Return the process of this host that had an id at a timestamp."""
        actual = started_at(pid)
        is_same = actual is not None and actual <= at + _SAME_START_SECONDS
        return cls(socket.gethostname(), pid, actual if actual and is_same else at)

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> "Process | None":
        """Return the process in the tags of a run."""
        at_time = tags.get(PROCESS_TAG)
        return None if at_time is None else cls.from_text(at_time)

    @classmethod
    def from_text(cls, text: str) -> "Process":
        """Parse `text`."""
        host, pid, started = text.rsplit(" ", 2)
        return cls(host, int(pid), float(started))

    @property
    def text(self) -> str:
        """Host, id and start time as text."""
        return f"{self.host} {self.pid} {self.started_at:.2f}"

    @property
    def tags(self) -> dict[str, str]:
        """The tags of its runs."""
        return {PROCESS_TAG: self.text}

    @property
    def is_of_this_host(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs; True for processes of other hosts."""
        if not self.is_of_this_host:
            return True
        actual = started_at(self.pid)
        return actual is not None and abs(actual - self.started_at) <= _SAME_START_SECONDS


def user_name() -> str | None:
    """Return the user of this process; None if it has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def started_at(pid: int) -> float | None:
    """Return the start time of a process, in seconds since 1970; None if it does not run."""
    try:
        process = psutil.Process(pid)
        is_zombie = process.status() == psutil.STATUS_ZOMBIE
        return None if is_zombie else process.create_time()
    except psutil.NoSuchProcess:
        return None
