"""The file of events: one JSON object a line, in the order in which they came."""

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
"""How large the file becomes before another begins; the one before it is kept, none else."""
_LOCK_SECONDS = 5.0


@dataclass(frozen=True)
class EventLog:
    """Events in a file, and the earlier ones in a second file beside it.

    A line is written in one call, so that readers see none in parts; an incomplete one of a
    killed process is removed by the next.
    """

    path: Path

    @property
    def earlier(self) -> Path:
        """Where the events before those of the file are."""
        return self.path.with_name(f"{self.path.stem}.earlier{self.path.suffix}")

    @property
    def folder(self) -> Path:
        """Where is kept what is known of the events beside them: which writes have not ended,
        and what was sent.
        """
        if not self.path.suffix:
            # A folder cannot be called as the file is.
            return self.path.with_name(f"{self.path.name}.state")
        return self.path.with_suffix("")

    def append(self, event: dict[str, Any]) -> None:
        """Add an event.

        :raises LakehouseError: when another process holds the file for seconds.
        """
        line = json.dumps(event, ensure_ascii=False).encode()
        with self.locked():
            self._make_room(len(line))
            append_line(self.path, line)

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from adding events, and from beginning another file.

        :raises LakehouseError: when another process holds the file for seconds.
        """
        busy = LakehouseError(
            f"{self.path} was being written by another process for {_LOCK_SECONDS:.0f} s;"
            " expected it free by then.",
            next_step="Nothing is to be done: the next write of the table tells it.",
        )
        return file_lock(self.folder / "write.lock", _LOCK_SECONDS, busy)

    def recorded(self, run_id: str) -> set[str]:
        """Return the types of the events that the files have of a run."""
        kinds = set()
        for path in (self.earlier, self.path):
            for line in _lines(path):
                if run_id.encode() in line:
                    kinds |= _kind(line, run_id)
        return kinds

    def _make_room(self, wanted_bytes: int) -> None:
        if not self.path.is_file():
            return
        size = self.path.stat().st_size
        if size and size + wanted_bytes > MAX_BYTES:
            self.path.replace(self.earlier)


def _lines(path: Path) -> Iterator[bytes]:
    if path.is_file():
        with path.open("rb") as file:
            yield from file


def _kind(line: bytes, run_id: str) -> set[str]:
    try:
        event = json.loads(line)
    except ValueError:
        # An incomplete line of a killed process.
        return set()
    return {event["eventType"]} if event["run"]["runId"] == run_id else set()
