"""The event file: one JSON object per line, in chronological order."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.storage.append_line import append_line
from lakehouse.storage.file_lock import file_lock

MAX_BYTES = 16 * 2**20
"""Size limit of the file before rotation; one previous file is kept."""
_LOCK_SECONDS = 5.0


@dataclass(frozen=True)
class EventLog:
    """Events in a file, and older events in a second file next to it.

    A line is written in one call, so readers never see partial lines; the next writer removes
    a partial line of a killed process.
    """

    path: Path

    @property
    def earlier(self) -> Path:
        """The file with older events."""
        return self.path.with_name(f"{self.path.stem}.earlier{self.path.suffix}")

    @property
    def folder(self) -> Path:
        """Folder with state: open runs and the delivery position."""
        if not self.path.suffix:
            # A folder cannot have the same name as the file.
            return self.path.with_name(f"{self.path.name}.state")
        return self.path.with_suffix("")

    def append(self, event: dict[str, Any]) -> None:
        """Append an event.

        :raises LakehouseError: another process locks the file for several seconds.
        """
        line = json.dumps(event, ensure_ascii=False).encode()
        with self.locked():
            self._make_room(len(line))
            append_line(self.path, line)

    def locked(self) -> AbstractContextManager[None]:
        """Lock the file against other writers and rotation.

        :raises LakehouseError: another process locks the file for several seconds.
        """
        busy = LakehouseError(
            f"{self.path} was being written by another process for {_LOCK_SECONDS:.0f} s;"
            " expected it free by then.",
            next_step="Nothing is to be done: the next write of the table tells it.",
        )
        return file_lock(self.folder / "write.lock", _LOCK_SECONDS, busy)

    def recorded(self, run_id: str) -> set[str]:
        """Return the types of the recorded events of a run."""
        kinds = set()
        for path in (self.earlier, self.path):
            for line in _lines(path):
                if run_id.encode() in line:
                    kinds |= _kind(line, run_id)
        return kinds

    def _make_room(self, added_bytes: int) -> None:
        if not self.path.is_file():
            return
        size = self.path.stat().st_size
        if size and size + added_bytes > MAX_BYTES:
            self.path.replace(self.earlier)


def _lines(path: Path) -> Iterator[bytes]:
    if path.is_file():
        with path.open("rb") as file:
            yield from file


def _kind(line: bytes, run_id: str) -> set[str]:
    try:
        event = json.loads(line)
    except ValueError:
        # A partial line of a killed process.
        return set()
    return {event["eventType"]} if event["run"]["runId"] == run_id else set()
