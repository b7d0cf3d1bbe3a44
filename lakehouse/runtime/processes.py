"""Which process a run belongs to, so that a dead one can be told from one that works."""

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from lakehouse.runtime.run_tags import HIDDEN_PREFIX

PROCESS_TAG = f"{HIDDEN_PREFIX}process"
"""Tag of a run that a command made: host, process id and start of its process."""
_SAME_START_SECONDS = 2.0


@dataclass(frozen=True)
class Process:
    """A process of a host; `started_at` (in seconds since 1970) tells it from a later one that
    has its number.
    """

    host: str
    pid: int
    started_at: float

    @classmethod
    def current(cls) -> "Process":
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), started_at(os.getpid()) or 0.0)

    @classmethod
    def noted(cls, pid: int, at: float) -> "Process":
        """Return a process of this host that had this number at a moment; one that started
        later is another.
        """
        actual = started_at(pid)
        is_same = actual is not None and actual <= at + _SAME_START_SECONDS
        return cls(socket.gethostname(), pid, actual if actual and is_same else at)

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> "Process | None":
        """Return the process that a run was tagged with."""
        noted = tags.get(PROCESS_TAG)
        return None if noted is None else cls.from_text(noted)

    @classmethod
    def from_text(cls, text: str) -> "Process":
        """Return the process that a text names, see `text`."""
        host, pid, started = text.rsplit(" ", 2)
        return cls(host, int(pid), float(started))

    @property
    def text(self) -> str:
        """Its host, its number and its start, as one text."""
        return f"{self.host} {self.pid} {self.started_at:.2f}"

    @property
    def tags(self) -> dict[str, str]:
        """What a run of this process is tagged with."""
        return {PROCESS_TAG: self.text}

    @property
    def is_of_this_host(self) -> bool:
        """Whether it is, or was, a process of the machine that this one is of."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs, as far as this host can tell: those of others are taken to be
        alive.
        """
        if not self.is_of_this_host:
            return True
        actual = started_at(self.pid)
        return actual is not None and abs(actual - self.started_at) <= _SAME_START_SECONDS


def user_name() -> str | None:
    """Return the name of who runs this process; None where the system knows none, as in a
    container that runs as some number.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def started_at(pid: int) -> float | None:
    """Return when a process of this host started, in seconds since 1970; None where there is no
    such process, or it has ended and nobody has asked how.
    """
    try:
        process = psutil.Process(pid)
        ended = process.status() == psutil.STATUS_ZOMBIE
        return None if ended else process.create_time()
    except psutil.NoSuchProcess:
        return None
