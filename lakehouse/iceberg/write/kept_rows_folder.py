"""Where one piece of work keeps its rows on a cluster, and who removes them.

A folder is removed at the end of who made it. Whoever was killed left a lock that nobody holds,
by which the next one knows that the rows can go.
"""

import logging
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakehouse.errors import TableBusy
from lakehouse.storage.file_lock import BRIEF_SECONDS, file_lock, is_held
from lakehouse.storage.object_store import ObjectStore, StoredObject

_log = logging.getLogger(__name__)
KEPT_ROWS = "kept-rows"
"""The folder below that of staged rows; no feed can have this name."""
_PREFIX = f"staging/{KEPT_ROWS}/"
_MOMENT = "%Y%m%dT%H%M%SZ"
_WRITTEN_LATE = timedelta(days=1)
"""How long after its client a Spark server may still write what it was told to."""
_OF_ANOTHER_HOST = timedelta(days=7)
"""How old a folder has to be whose lock is not on this host, before it is taken for left behind;
a refused branch is kept for as long.
"""


@dataclass(frozen=True)
class KeptRowsFolder:
    """A folder of kept rows, below a home or in a bucket."""

    store: ObjectStore
    lock_dir: Path
    name: str
    files: Sequence[StoredObject] = field(default=(), compare=False)
    """What it held when it was listed."""

    @classmethod
    def new(cls, store: ObjectStore, lock_dir: Path) -> "KeptRowsFolder":
        """Return one that nobody else has; nothing is made."""
        moment = datetime.now(UTC).strftime(_MOMENT)
        return cls(store, lock_dir, f"{moment}-{secrets.token_hex(8)}")

    @property
    def prefix(self) -> str:
        """The beginning of the keys of what is in it."""
        return f"{_PREFIX}{self.name}/"

    @property
    def lock_file(self) -> Path:
        """What its maker holds for as long as it works; on another host there is none."""
        return self.lock_dir / KEPT_ROWS / f"{self.name}.lock"

    @property
    def begun_at(self) -> datetime:
        """When it was made, in whole seconds; the oldest moment of one whose name does not
        tell.
        """
        try:
            begun_at = datetime.strptime(self.name.partition("-")[0], _MOMENT)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)
        return begun_at.replace(tzinfo=UTC)

    @property
    def is_left(self) -> bool:
        """Whether nobody is at it any more, as far as this host can tell."""
        if self.lock_file.exists():
            return not is_held(self.lock_file)
        return self._is_older_than(_OF_ANOTHER_HOST)

    def uri(self, number: int) -> str:
        """Return where Spark puts the rows of one frame, and finds them."""
        return self.store.spark_uri(f"{self.prefix}{number}")

    def held(self, wait_seconds: float = BRIEF_SECONDS) -> AbstractContextManager[None]:
        """Hold it: nobody else removes it meanwhile.

        :raises TableBusy: when another process does for longer than `wait_seconds`.
        """
        busy = TableBusy(
            f"Rows in {self.store.uri(self.prefix)} are in use by another process, and were not"
            f" free within {wait_seconds:.0f} s.",
            next_step="Wait for that run to end, or stop it, and run this again.",
        )
        return file_lock(self.lock_file, wait_seconds, busy)

    def try_to_remove(self) -> bool:
        """Remove what is in it; False where it cannot be: what was written stays written, and the
        log says that there are rows left.
        """
        try:
            self.store.remove_folder(self.prefix)
        except Exception as error:
            place = self.store.uri(self.prefix)
            _log.warning("%s was not removed; the next write tries again: %s", place, error)
            return False
        return True

    def remove_if_left(self) -> bool:
        """Remove it where nobody is at it, and say whether it is gone."""
        if not self.lock_file.exists():
            return self.is_left and self.try_to_remove()
        try:
            with self.held(wait_seconds=0):
                is_removed = self.try_to_remove()
                if is_removed and self._is_older_than(_WRITTEN_LATE):
                    self.lock_file.unlink(missing_ok=True)
        except TableBusy:
            return False
        return is_removed

    def _is_older_than(self, age: timedelta) -> bool:
        return datetime.now(UTC) - age > self.begun_at


def list_folders(store: ObjectStore, lock_dir: Path) -> list[KeptRowsFolder]:
    """Return the folders that hold anything, and those that a Spark may yet write to, by name."""
    files: dict[str, list[StoredObject]] = {}
    for lock_file in (lock_dir / KEPT_ROWS).glob("*.lock"):
        files[lock_file.stem] = []
    for item in store.remains(_PREFIX):
        name, separator, _ = item.key.removeprefix(_PREFIX).partition("/")
        # What is in no folder, Hadoop's file systems put there for one.
        if name and separator:
            files.setdefault(name, []).append(item)
    return [KeptRowsFolder(store, lock_dir, name, files[name]) for name in sorted(files)]


def remove_left(store: ObjectStore, lock_dir: Path) -> None:
    """Remove the rows that processes kept which are gone; where they cannot be listed, the log
    says so.
    """
    try:
        folders = list_folders(store, lock_dir)
    except Exception as error:
        _log.warning(
            "%s was not looked into for rows that are left; the next write tries again: %s",
            store.uri(_PREFIX),
            error,
        )
        return
    for folder in folders:
        folder.remove_if_left()
