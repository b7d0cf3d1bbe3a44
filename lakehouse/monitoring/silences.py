"""Tables that are silenced for a time: what fires there is recorded and sent to nobody, until
then.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from lakehouse.settings import Settings
from lakehouse.storage.file_lock import BRIEF_SECONDS, busy_file, file_lock
from lakehouse.storage.json_files import read_json, write_json


@dataclass(frozen=True)
class Silence:
    """Who silenced a table, or those of a pattern such as `silver.*`, when, until when and
    why.
    """

    table: str
    until: datetime
    by: str
    why: str
    at: datetime

    def covers(self, table: str) -> bool:
        """Whether it is of a table; what is of no table is silenced by `*` alone."""
        return fnmatchcase(table, self.table)

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"until {self.until.isoformat(timespec='minutes')} by {self.by}{why}"


def read_silences(settings: Settings) -> tuple[Silence, ...]:
    """Return all silences that were ever made, the oldest first; those that are over too.

    :raises LakehouseError: when their file is damaged.
    """
    file = silences_file(settings)
    if not file.is_file():
        return ()
    silences: tuple[Silence, ...] = read_json(file, tuple[Silence, ...])
    return silences


def add_silence(settings: Settings, silence: Silence) -> None:
    """Record a silence; the newest of a table is the one that holds."""
    settings.make_home()
    file = silences_file(settings)
    with silences_lock(settings):
        silences = (*read_silences(settings), silence)
        write_json(file, silences, tuple[Silence, ...], indent=1)


def find_silence(silences: Iterable[Silence], table: str, now: datetime) -> Silence | None:
    """Return what silences a table now."""
    covering = (silence for silence in select_current(silences, now) if silence.covers(table))
    return next(covering, None)


def select_current(silences: Iterable[Silence], now: datetime) -> list[Silence]:
    """Return the silences that hold now; a newer one of the same name replaces an older one."""
    newest = {silence.table: silence for silence in silences}
    return [silence for silence in newest.values() if now < silence.until]


def silence_texts(settings: Settings) -> Callable[[str, datetime], str]:
    """Return what says who silenced a table and why, as of now; nothing where nobody did."""
    silences = read_silences(settings)
    return lambda table, now: str(find_silence(silences, table, now) or "")


def silences_file(settings: Settings) -> Path:
    """Return where the silences are kept."""
    return settings.home / "alerts" / "mutes.json"


def silences_lock(settings: Settings) -> AbstractContextManager[None]:
    """Hold the lock of who changes that file.

    :raises LakehouseError: when another process goes on to.
    """
    file = silences_file(settings)
    return file_lock(file.with_name(f"{file.name}.lock"), BRIEF_SECONDS, busy_file(file))
