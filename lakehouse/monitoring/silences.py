"""Tables that are muted for a time: what breaks there is recorded and told to nobody, until
then.
"""

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
class Silence:
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


def read_silences(settings: Settings) -> tuple[Silence, ...]:
    """Return all mutes that were ever made, the oldest first; those that are over too."""
    file = _file(settings)
    if not file.is_file():
        return ()
    return tuple(
        Silence(
            **{
                **one,
                "until": datetime.fromisoformat(one["until"]),
                "at": datetime.fromisoformat(one["at"]),
            }
        )
        for one in json.loads(file.read_text(encoding="utf-8"))
    )


def add_silence(settings: Settings, silence: Silence) -> None:
    """Record a mute; the newest of a table is the one that holds."""
    settings.make_home()
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{file}.lock"):
        kept = [*read_silences(settings), silence]
        said = [
            asdict(one) | {"until": one.until.isoformat(), "at": one.at.isoformat()}
            for one in kept
        ]
        replace_text(file, json.dumps(said, indent=1, ensure_ascii=False) + "\n")


def silence_of(silences: Iterable[Silence], table: str, now: datetime) -> Silence | None:
    """Return what mutes a table now; a newer mute of the same name takes the place of an older
    one.
    """
    newest = {silence.table: silence for silence in silences}
    return next((silence for silence in newest.values() if silence.covers(table, now)), None)


def silence_texts(settings: Settings) -> Callable[[str, datetime], str]:
    """Return what says who muted a table and why, as of now; nothing where nobody did."""
    silences = read_silences(settings)
    return lambda table, now: str(silence_of(silences, table, now) or "")


def holding(silences: Iterable[Silence], now: datetime) -> list[Silence]:
    """Return the mutes that hold now."""
    return [
        silence
        for silence in {silence.table: silence for silence in silences}.values()
        if now < silence.until
    ]


def _file(settings: Settings) -> Path:
    return settings.home / "alerts" / "mutes.json"
