"""The address of Dagster's UI."""

import errno
import socket
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.settings import Settings
from lakehouse.spark.processes import Process
from lakehouse.storage.json_files import read_json, write_json


@dataclass(frozen=True)
class DevNote:
    """A `lakehouse dev` of this home."""

    process: Process
    url: str

    @property
    def started_at(self) -> datetime:
        """When it was started."""
        return datetime.fromtimestamp(self.process.started_at, UTC)


def leave_note(settings: Settings, url: str) -> None:
    """Say that this process is the home's `dev`."""
    write_json(_file(settings), DevNote(Process.current(), url), DevNote)


def running_dev(settings: Settings) -> DevNote | None:
    """Return the `dev` that runs on this home; None if none runs."""
    file = _file(settings)
    note: DevNote | None = read_json(file, DevNote) if file.exists() else None
    return note if note and note.process.is_alive else None


def remove_note(settings: Settings) -> None:
    """Say that `dev` ends."""
    _file(settings).unlink(missing_ok=True)


def _file(settings: Settings) -> Path:
    return settings.home / "dev.json"


_TRIED_PORTS = 20
_ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class UIAddress:
    """The host and port that the UI listens on."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"http://{_in_url(self.host)}:{self.port}"

    @property
    def is_served(self) -> bool:
        """Whether the webserver answers."""
        # A server that listens on all addresses is reached by the local one.
        local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        url = f"http://{_in_url(local)}:{self.port}/server_info"
        try:
            with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS):
                return True
        except OSError:
            return False


def listen(host: str, port: int, *, is_fixed: bool) -> tuple[socket.socket, UIAddress]:
    """Listen on a port, or on the next free one unless it is fixed; the webserver inherits the
    socket, so that no other process can take the port.

    :raises UsageError: if no port is free, or this machine cannot listen on the host or port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in range(port, min(port + (1 if is_fixed else _TRIED_PORTS), 65_536)):
        try:
            return socket.create_server((host, tried), family=family), UIAddress(host, tried)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UsageError(
                    f"This machine cannot listen on {_in_url(host)}:{tried}"
                    f" ({error.strerror}); expected a name or an address of this machine, and"
                    " a port that its user may open.",
                    next_step="Leave out --host to listen on 127.0.0.1.",
                ) from error
    raise UsageError(
        f"Another process listens on {_in_url(host)}:{port} already; expected a free port.",
        next_step="Stop it, or give another one with --port.",
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
