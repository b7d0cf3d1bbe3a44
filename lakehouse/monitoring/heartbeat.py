"""The sign of life of what watches: a file and a call, so that something outside can miss
them.
"""

import urllib.request
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lakehouse.settings import Settings
from lakehouse.storage.json_files import read_json, write_json

FILE = "heartbeat"
_TIMEOUT_SECONDS = 5


def heartbeat_file(settings: Settings) -> Path:
    """Return where the last sign of life stands."""
    return settings.home / FILE


@dataclass(frozen=True)
class Heartbeat:
    """What a round of monitoring leaves behind."""

    at: datetime
    broken: int
    """How many incidents are open."""
    undelivered: int
    """How many messages wait for a sink."""
    places: tuple[str, ...] = ()
    """The names of the sinks; another process may have others by its environment."""


def beat(settings: Settings, heartbeat: Heartbeat) -> str:
    """Leave a sign of life, and make the call that the settings ask for; return why that
    failed, where it did.
    """
    write_json(heartbeat_file(settings), heartbeat, Heartbeat)
    if not settings.heartbeat_url:
        return ""
    try:
        # The settings let nothing but http and https through.
        with urllib.request.urlopen(settings.heartbeat_url, timeout=_TIMEOUT_SECONDS):  # noqa: S310
            return ""
    except (OSError, ValueError) as error:
        # Its text may hold the address, and that a secret.
        return f"LAKEHOUSE_HEARTBEAT_URL was not reached: {type(error).__name__}."


def read_heartbeat(settings: Settings) -> Heartbeat | None:
    """Return the last sign of life; None where there is none."""
    file = heartbeat_file(settings)
    return read_json(file, Heartbeat) if file.is_file() else None
