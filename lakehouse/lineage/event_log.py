"""The event file: one JSON object per line, in chronological order."""

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.storage.atomic_files import append_line
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
            size = self.path.stat().st_size if self.path.is_file() else 0
            if size and size + len(line) > MAX_BYTES:
                self.path.replace(self.earlier)
            append_line(self.path, line)

    def locked(self) -> AbstractContextManager[None]:
        """Lock the file against other writers and rotation.

        :raises LakehouseError: another process locks the file for several seconds.
        """
        busy = LakehouseError(
            f"{self.path} was locked by another process for {_LOCK_SECONDS:.0f} s.",
            next_step="The next write of the table emits the event.",
        )
        return file_lock(self.folder / "write.lock", _LOCK_SECONDS, busy)

    def recorded(self, run_id: str) -> set[str]:
        """Return the types of the recorded events of a run."""
        types = set()
        for path in filter(Path.is_file, (self.earlier, self.path)):
            for line in path.read_bytes().split(b"\n"):
                if run_id.encode() in line and line.endswith(b"}"):
                    event = json.loads(line)
                    if event["run"]["runId"] == run_id:
                        types.add(event["eventType"])
        return types
