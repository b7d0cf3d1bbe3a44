"""Lock of a table for one writer per host, and a log of its writes.

The next holder of the lock finds the branches of dead writers in the log. A Spark server can
commit seconds after its client died, and create such a branch again, so entries are kept for a
day.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import TableBusy
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.file_lock import file_lock

WAIT_SECONDS = 3600.0
_RETENTION_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class WriteLog:
    """Unfinished writes of one table on this host; used under the table's lock."""

    path: Path

    def begin(self, write_id: str) -> None:
        """Record a write before its branch is created."""
        with self.path.open("a", encoding="utf-8") as log:
            # Start a new line, since a killed writer can leave a partial one.
            log.write(f"\n{write_id} {time.time():.0f}\n")

    def end(self, write_id: str) -> None:
        """Remove a write whose branch was dropped."""
        self._keep({begun: at for begun, at in self._entries().items() if begun != write_id})

    def unfinished(self) -> list[str]:
        """Return unfinished writes; under the lock, their writers are dead."""
        entries = self._entries()
        if not entries:
            return []
        oldest = time.time() - _RETENTION_SECONDS
        self._keep({begun: at for begun, at in entries.items() if at > oldest})
        return list(entries)

    def _entries(self) -> dict[str, float]:
        if not self.path.exists():
            return {}
        lines = [line.split() for line in self.path.read_text(encoding="utf-8").splitlines()]
        # A partial line belongs to a write that was killed before its branch was created.
        return {words[0]: float(words[1]) for words in lines if len(words) == 2}

    def _keep(self, entries: dict[str, float]) -> None:
        lines = (f"{begun} {at:.0f}\n" for begun, at in entries.items())
        replace_text(self.path, "".join(lines))


@contextmanager
def table_lock(
    engine: Engine, table: str, wait_seconds: float = WAIT_SECONDS
) -> Iterator[WriteLog]:
    """Hold the lock of a table; upkeep passes `wait_seconds=0` and continues without it.

    :raises TableBusy: if another process holds it for longer than `wait_seconds`.
    """
    busy = TableBusy(
        f"{table} is being written by another process, and its lock was not free within"
        f" {wait_seconds:.0f} s.",
        next_step="Wait for that run to end, or stop it, and run this again.",
    )
    with file_lock(engine.lock_dir / f"{table}.lock", wait_seconds, busy):
        yield WriteLog(engine.lock_dir / f"{table}.writes")
