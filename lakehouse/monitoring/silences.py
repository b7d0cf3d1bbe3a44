"""Tables that are muted for a time: what breaks there is recorded and told to nobody, until then."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from filelock import FileLock

from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text


@dataclass(frozen=True)
class Mute:
    """Who muted a table, or those of a pattern such as `silver.*`, when, until when and why."""

    table: str
    until: datetime
    by: str
    why: str
    at: datetime

    def covers(self, table: str, now: datetime) -> bool:
        """Whether it holds now for a table; what is of no table is muted by `*` alone."""
        return now < self.until and fnmatchcase(table, self.table)

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"until {self.until.isoformat(timespec='minutes')} by {self.by}{why}"


def read_mutes(settings: Settings) -> tuple[Mute, ...]:
    """Return all mutes that were ever made, the oldest first; those that are over too."""
    file = _file(settings)
    if not file.is_file():
        return ()
    return tuple(
        Mute(**{**one, "until": datetime.fromisoformat(one["until"]), "at": datetime.fromisoformat(one["at"])})
        for one in json.loads(file.read_text(encoding="utf-8"))
    )


def add_mute(settings: Settings, mute: Mute) -> None:
    """Record a mute; the newest of a table is the one that holds."""
    settings.make_home()
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{file}.lock"):
        kept = [*read_mutes(settings), mute]
        said = [asdict(one) | {"until": one.until.isoformat(), "at": one.at.isoformat()} for one in kept]
        replace_text(file, json.dumps(said, indent=1, ensure_ascii=False) + "\n")


def mute_of(mutes: Iterable[Mute], table: str, now: datetime) -> Mute | None:
    """Return what mutes a table now; a newer mute of the same name takes the place of an older one."""
    newest = {mute.table: mute for mute in mutes}
    return next((mute for mute in newest.values() if mute.covers(table, now)), None)


def said_mutes(settings: Settings) -> Callable[[str, datetime], str]:
    """Return what says who muted a table and why, as of now; nothing where nobody did."""
    mutes = read_mutes(settings)
    return lambda table, now: str(mute_of(mutes, table, now) or "")


def holding(mutes: Iterable[Mute], now: datetime) -> list[Mute]:
    """Return the mutes that hold now."""
    return [mute for mute in {mute.table: mute for mute in mutes}.values() if now < mute.until]


def _file(settings: Settings) -> Path:
    return settings.home / "alerts" / "mutes.json"
