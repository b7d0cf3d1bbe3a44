"""Things that broke and are no check, run or file that a look finds by itself: whoever sees one
reports it here.

A server that died, a pipe in an inbox: `report_firing` leaves a note in the home, also where
Dagster and Spark are gone, and `lakehouse.monitoring` tells people of it at its next look,
within ten seconds while `lakehouse dev` runs.
"""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakehouse.orchestration.alert import Severity
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import brief_lock
from lakehouse.storage.json_files import read_json, write_json

_REMEMBERED = 50
"""How many notes of one thing are kept; a look every ten seconds sees each."""
_FORGOTTEN_AFTER = timedelta(days=7)


@dataclass(frozen=True)
class Report:
    """What is told of a thing that broke; `key` names the thing, and is the same when it breaks
    again.

    No text may hold a value of a row: it is sent to people and kept.
    """

    key: str
    """Such as `spark server` or `inbox fruits/pipe`."""
    title: str
    """What broke, in some words: `Spark died`."""
    lines: tuple[str, ...] = ()
    """How, since when, and when it is tried again."""
    commands: tuple[str, ...] = ()
    """What a person may run, as it stands; nothing to fill in."""
    severity: Severity = "error"
    table: str = ""
    """The table or feed's table that it is about, by which alerts are routed and muted; nothing
    of the whole.
    """


@dataclass(frozen=True)
class Note:
    """That a thing broke at a moment, or was mended then; `resolved` says how."""

    report: Report
    at: datetime
    resolved: str = ""


def report_firing(settings: Settings, report: Report, at: datetime | None = None) -> None:
    """Report that something broke; each call is one failure of it, and people are told of the
    first and the end.

    Where the same was reported last in the same words, nothing is written: a caller may look
    again and again.
    """
    _add(settings, Note(report, at or datetime.now(UTC)))


def report_resolved(settings: Settings, key: str, how: str, at: datetime | None = None) -> None:
    """Report that something is over, such as 'Spark was started again.'; nothing where it was
    not reported broken.
    """
    file = _file(settings, key)
    known = _read(file)
    if known and not known[-1].resolved:
        _add(settings, Note(known[-1].report, at or datetime.now(UTC), how))


def read_reports(settings: Settings) -> Iterator[Note]:
    """Yield all notes that are kept, of each thing the oldest first."""
    for file in report_files(settings):
        yield from _read(file)


def unresolved_keys(settings: Settings, prefix: str) -> set[str]:
    """Return the keys that begin so, of what was reported broken and is not resolved since."""
    last = {note.report.key: note for note in read_reports(settings)}
    return {key for key, note in last.items() if key.startswith(prefix) and not note.resolved}


def report_files(settings: Settings) -> list[Path]:
    """Return the files of the notes, one for each thing."""
    return sorted(_folder(settings).glob("*.json"))


def reports_lock(settings: Settings) -> AbstractContextManager[None]:
    """Hold the lock of who adds a note.

    :raises LakehouseError: when another process goes on to.
    """
    return brief_lock(_folder(settings).with_suffix(".lock"))


def _add(settings: Settings, note: Note) -> None:
    file = _file(settings, note.report.key)
    with reports_lock(settings):
        known = _read(file)
        if known and replace(known[-1], at=note.at) == note:
            return
        _forget(settings, note.at)
        write_json(file, [*known, note][-_REMEMBERED:], list[Note], indent=1)


def _forget(settings: Settings, now: datetime) -> None:
    """Remove the notes of what was mended long ago."""
    for file in _folder(settings).glob("*.json"):
        last = _read(file)[-1]
        if last.resolved and now - last.at > _FORGOTTEN_AFTER:
            file.unlink()


def _read(file: Path) -> list[Note]:
    return read_json(file, list[Note]) if file.is_file() else []


def _folder(settings: Settings) -> Path:
    return settings.home / "alerts" / "reported"


def _file(settings: Settings, key: str) -> Path:
    return _folder(settings) / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
