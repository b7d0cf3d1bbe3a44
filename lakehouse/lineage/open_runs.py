"""Which writes began and have not ended: a file for each, with the event that it began."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.storage.atomic_files import replace_text


@dataclass(frozen=True)
class OpenRuns:
    """The writes of a home that have not ended, by table; used under the lock of the table."""

    folder: Path

    def begin(self, table: str, write_id: str, start: dict[str, Any]) -> None:
        """Note a write, before it is told."""
        replace_text(self._file(table, write_id), json.dumps(start, ensure_ascii=False))

    def end(self, table: str, write_id: str) -> None:
        """Forget a write whose end was told."""
        self._file(table, write_id).unlink(missing_ok=True)

    def of(self, table: str) -> list[str]:
        """Return the ids of the writes of a table, in the order in which they began."""
        folder = self.folder / table
        return sorted(file.stem for file in folder.glob("*.json")) if folder.is_dir() else []

    def start(self, table: str, write_id: str) -> dict[str, Any]:
        """Return the event that a write began."""
        event: dict[str, Any] = json.loads(
            self._file(table, write_id).read_text(encoding="utf-8")
        )
        return event

    def _file(self, table: str, write_id: str) -> Path:
        return self.folder / table / f"{write_id}.json"
