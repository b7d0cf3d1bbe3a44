"""Which process a run belongs to, so that a dead one can be told from one that works."""

import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

PROCESS_TAG = "lakehouse/process"
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
        found = started_at(pid)
        return cls(
            socket.gethostname(),
            pid,
            found if found is not None and found <= at + _SAME_START_SECONDS else at,
        )

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> "Process | None":
        """Return the process that a run was tagged with."""
        if PROCESS_TAG not in tags:
            return None
        host, pid, started = tags[PROCESS_TAG].rsplit(" ", 2)
        return cls(host, int(pid), float(started))

    @property
    def tags(self) -> dict[str, str]:
        """What a run of this process is tagged with."""
        return {PROCESS_TAG: f"{self.host} {self.pid} {self.started_at:.2f}"}

    @property
    def is_alive(self) -> bool:
        """Whether it still runs, as far as this host can tell: those of others are taken to be
        alive.
        """
        if self.host != socket.gethostname():
            return True
        found = started_at(self.pid)
        return found is not None and abs(found - self.started_at) <= _SAME_START_SECONDS


def started_at(pid: int) -> float | None:
    """Return when a process of this host started, in seconds since 1970; None where there is no
    such process.
    """
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        return _boot_time() + _ticks(stat) / os.sysconf("SC_CLK_TCK") if stat.exists() else None
    found = subprocess.run(
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        env={"LC_ALL": "C"},
        check=False,
    )
    text = " ".join(found.stdout.split())
    return (
        datetime.strptime(text, "%a %b %d %H:%M:%S %Y").astimezone().timestamp()
        if text
        else None
    )


def _ticks(stat: Path) -> int:
    # The name of the program is in parentheses and may hold blanks; the start is the 22nd
    # field.
    return int(stat.read_text().rpartition(")")[2].split()[19])


@cache
def _boot_time() -> float:
    lines = Path("/proc/stat").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("btime")))
