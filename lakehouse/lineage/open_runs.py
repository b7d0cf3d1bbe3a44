"""Started writes without an end event: one file each, with the START event."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.storage.atomic_files import replace_text


@dataclass(frozen=True)
class OpenRuns:
    """Open writes of a home by table; used under the table lock."""

    folder: Path

    def begin(self, table: str, write_id: str, start: dict[str, Any]) -> None:
        """Record a write before its START event is emitted."""
        replace_text(self._file(table, write_id), json.dumps(start, ensure_ascii=False))

    def end(self, table: str, write_id: str) -> None:
        """Remove a write after its end event."""
        self._file(table, write_id).unlink(missing_ok=True)

    def of(self, table: str) -> list[str]:
        """Return the open write ids of a table, oldest first."""
        folder = self.folder / table
        return sorted(file.stem for file in folder.glob("*.json")) if folder.is_dir() else []

    def start(self, table: str, write_id: str) -> dict[str, Any]:
        """Return the START event of a write."""
        event: dict[str, Any] = json.loads(
            self._file(table, write_id).read_text(encoding="utf-8")
        )
        return event

    def _file(self, table: str, write_id: str) -> Path:
        return self.folder / table / f"{write_id}.json"
