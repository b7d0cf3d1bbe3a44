"""One writer of a table at a time on a host, and no trace of those that died.

Beside the lock stands the list of the writes that were begun: whoever takes it next finds there
the branches of dead writers. A Spark server may commit seconds after its client died, and so
bring such a branch back: the list keeps a dead write for a day.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import TableBusy
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.file_lock import file_lock

WAIT_SECONDS = 3600.0
_REMEMBERED_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class WriteLog:
    """The writes of one table that were begun on this host and not ended; used under the
    table's lock.
    """

    path: Path

    def begin(self, write_id: str) -> None:
        """Note a write before its branch is made."""
        with self.path.open("a", encoding="utf-8") as log:
            # On a line of its own also after a writer that was killed in the middle of one.
            log.write(f"\n{write_id} {time.time():.0f}\n")

    def end(self, write_id: str) -> None:
        """Forget a write whose branch is gone."""
        self._keep({begun: at for begun, at in self._entries().items() if begun != write_id})

    def dead(self) -> list[str]:
        """Return the writes that never ended; under the lock, their writers are dead."""
        entries = self._entries()
        if not entries:
            return []
        oldest = time.time() - _REMEMBERED_SECONDS
        self._keep({begun: at for begun, at in entries.items() if at > oldest})
        return list(entries)

    def _entries(self) -> dict[str, float]:
        if not self.path.exists():
            return {}
        lines = [line.split() for line in self.path.read_text(encoding="utf-8").splitlines()]
        # Half a line is a write that was killed before it made its branch.
        return {words[0]: float(words[1]) for words in lines if len(words) == 2}

    def _keep(self, entries: dict[str, float]) -> None:
        lines = (f"{begun} {at:.0f}\n" for begun, at in entries.items())
        replace_text(self.path, "".join(lines))


@contextmanager
def table_lock(
    engine: Engine, table: str, wait_seconds: float = WAIT_SECONDS
) -> Iterator[WriteLog]:
    """Hold the lock of a table; upkeep passes `wait_seconds=0` and goes on without it.

    :raises TableBusy: when another process holds it for longer than `wait_seconds`.
    """
    busy = TableBusy(
        f"{table} is being written by another process, and its lock was not free within"
        f" {wait_seconds:.0f} s.",
        next_step="Wait for that run to end, or stop it, and run this again.",
    )
    with file_lock(engine.lock_dir / f"{table}.lock", wait_seconds, busy):
        yield WriteLog(engine.lock_dir / f"{table}.writes")
