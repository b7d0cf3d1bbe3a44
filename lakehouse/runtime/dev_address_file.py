"""The note of a running `lakehouse dev` in its home: its process and the URL of its UI."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakehouse.runtime.processes import Process
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text


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
    replace_text(
        _file(settings), json.dumps(asdict(DevNote(Process.current(), url))), mode=0o600
    )


def running_dev(settings: Settings) -> DevNote | None:
    """Return the `dev` that runs on this home; None where there is none, or it is gone."""
    try:
        content = json.loads(_file(settings).read_text(encoding="utf-8"))
        note = DevNote(Process(**content["process"]), content["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return note if note.process.is_alive else None


def remove_note(settings: Settings) -> None:
    """Say that `dev` ends."""
    _file(settings).unlink(missing_ok=True)


def _file(settings: Settings) -> Path:
    return settings.home / "dev.json"
