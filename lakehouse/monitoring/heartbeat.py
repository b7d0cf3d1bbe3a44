"""The sign of life of what watches: a file and a call, so that something outside can miss
them.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text

FILE = "heartbeat"
_TIMEOUT_SECONDS = 5


def heartbeat_file(settings: Settings) -> Path:
    """Return where the last sign of life stands."""
    return settings.home / FILE


def beat(
    settings: Settings, at: datetime, broken: int, undelivered: int, places: Iterable[str] = ()
) -> str:
    """Leave a sign of life, and make the call that the settings ask for; return why that
    failed, where it did.

    :param broken: how many things are broken now.
    :param undelivered: how many messages wait for a sink.
    :param places: the names of the sinks that are told; another process may be told of others
        by its environment.
    """
    said = {
        "at": at.isoformat(),
        "broken": broken,
        "undelivered": undelivered,
        "places": sorted(places),
    }
    replace_text(heartbeat_file(settings), json.dumps(said) + "\n")
    if not settings.heartbeat_url:
        return ""
    try:
        # The settings let nothing but http and https through.
        with urllib.request.urlopen(settings.heartbeat_url, timeout=_TIMEOUT_SECONDS):  # noqa: S310
            return ""
    except (urllib.error.URLError, TimeoutError, OSError, ValueError) as error:
        # Its text may hold the address, and that a secret.
        return f"LAKEHOUSE_HEARTBEAT_URL was not reached: {type(error).__name__}."


def last_beat(settings: Settings) -> datetime | None:
    """Return when the last sign of life was left; None where there is none."""
    said = _read(settings)
    return datetime.fromisoformat(said["at"]) if said else None


def told_places(settings: Settings) -> list[str]:
    """Return the names of the sinks that whoever looked last tells of what is broken."""
    return list(_read(settings).get("places", ()))


def _read(settings: Settings) -> dict[str, Any]:
    file = heartbeat_file(settings)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
