"""Erases data subjects from every place that is neither a table nor a delivered file."""

import os
import re
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, nullcontext
from datetime import datetime
from pathlib import Path

from lakehouse.alerts.alert_state import state_file, state_lock
from lakehouse.alerts.sinks import FILE_NAME
from lakehouse.errors import LakehouseError
from lakehouse.orchestration.incident_reports import reports_file, reports_lock
from lakehouse.privacy.places.dagster_records import connect, delete_dagster_records
from lakehouse.privacy.places.elsewhere import places_elsewhere, sent_alerts
from lakehouse.privacy.places.left_folders import is_of_a_process, remove_left_folders
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.places.value_masker import ValueMasker
from lakehouse.runtime.deployment import masking_keys_in_use
from lakehouse.settings import Settings
from lakehouse.tables.person import Person

_ERASED_ELSEWHERE = ("warehouse", "inbox", "archive", "rejected", "privacy")
"""Folders of tables, delivered files and requests."""
_SETTINGS = ("alerts.toml", "masking.key", "dagster/dagster.yaml")
_DATABASE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
_PICKLE = b"\x80"
_IS_LOG = re.compile(r".*[.](log([.]\d+)?|jsonl|out|err)")
_HEAD_BYTES = 1 << 16
_WAIT_SECONDS = 60.0
"""A round of monitoring sends messages for half a minute at most."""


def scrub_places(
    settings: Settings,
    persons: Iterable[Person],
    shared: Collection[str] = (),
    *,
    gone_at: datetime | None = None,
    is_dry: bool = False,
) -> tuple[ScrubbedPlace, ...]:
    """Erase persons below the home, except for tables, delivered files and requests.

    After a kill, the next call does the rest. A file that is not text, a database or gzip stays
    as it is: the proof names it if it contains a value.

    :param shared: personal values that another person has too; they stay.
    :param gone_at: when the persons were erased from tables and delivered files: a living Spark
        has no values in what it spilled later. None if they can still be read.
    :param is_dry: only count what would be masked and removed.
    :returns: the places with values, and those that could not be erased.
    """
    people = tuple(persons)
    if not people:
        return ()
    masker = ValueMasker(people, shared, masking_keys_in_use(settings))
    places = list(remove_left_folders(settings, gone_at, is_dry=is_dry))
    # Before logs and alerts, which monitoring would write again from Dagster's records.
    places += delete_dagster_records(settings, people, list(shared), is_dry=is_dry)
    alert_files = [settings.home / FILE_NAME, state_file(settings), reports_file(settings)]
    for file in _home_files(settings, settings.home):
        if file not in alert_files:
            places += _scrub_file(settings, masker, file, is_dry=is_dry)
    alerts = _scrub_alerts(settings, masker, filter(Path.is_file, alert_files), is_dry=is_dry)
    if any(place.values for place in alerts):
        places += sent_alerts(settings)
    return (*places, *alerts, *places_elsewhere(settings), *_short_values(masker))


def _scrub_alerts(
    settings: Settings, masker: ValueMasker, files: Iterable[Path], *, is_dry: bool
) -> list[ScrubbedPlace]:
    """Mask values in the files of alerts under their locks."""
    with_values = [file for file in files if masker.mask_file(file, is_dry=True)]
    if not with_values:
        return []
    lock = nullcontext() if is_dry else state_lock(settings, _WAIT_SECONDS)
    reports = nullcontext() if is_dry else reports_lock(settings)
    try:
        with lock, reports:
            return [
                place
                for file in with_values
                for place in _scrub_file(settings, masker, file, is_dry=is_dry)
            ]
    except LakehouseError as error:
        names = [_name(settings, masker, file) for file in with_values]
        return [ScrubbedPlace(name, "busy", why=str(error)) for name in names]


def _home_files(settings: Settings, folder: Path) -> Iterator[Path]:
    """Yield the files that no other step of an erasure handles."""
    for parent, folders, files in os.walk(folder):
        if Path(parent) == settings.home:
            folders[:] = [name for name in folders if name not in _ERASED_ELSEWHERE]
        folders.sort()
        for name in sorted(files):
            file = Path(parent, name)
            if str(file.relative_to(settings.home)) not in _SETTINGS and not (
                file.is_symlink() or is_of_a_process(settings, file)
            ):
                yield file


def _scrub_file(
    settings: Settings, masker: ValueMasker, file: Path, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    name = _name(settings, masker, file)
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
        if head.startswith(_DATABASE):
            yield from _clean_database(masker, file, name, is_dry=is_dry)
        elif head.startswith(_GZIP):
            yield from _erased(name, masker.mask_gzip(file, is_dry=is_dry))
        elif b"\0" not in head or head.startswith(_PICKLE) or _IS_LOG.fullmatch(file.name):
            yield from _erased(name, masker.mask_file(file, is_dry=is_dry))
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error) as error:
        why = f"It cannot be read or written: {type(error).__name__}."
        yield ScrubbedPlace(name, "not reached", files=1, why=why)


def _clean_database(
    masker: ValueMasker, file: Path, name: str, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Remove the content of deleted rows from a database and its write-ahead log."""
    try:
        with closing(connect(file)) as connection:
            free_pages = connection.execute("PRAGMA freelist_count").fetchone()[0]
            values = _values_in_database(masker, file)
            if is_dry or not (free_pages or values):
                return
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            connection.execute("VACUUM")
            is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise OSError from error
        is_busy = True
    except sqlite3.DatabaseError as error:
        raise OSError from error
    if is_busy:
        why = "Another process uses it; the next call does the rest."
        yield ScrubbedPlace(name, "busy", why=why)
    elif _values_in_database(masker, file):
        why = "Values are in its rows."
        yield ScrubbedPlace(name, "not reached", files=1, why=why)


def _values_in_database(masker: ValueMasker, file: Path) -> int:
    sides = [file.with_name(f"{file.name}{side}") for side in ("", "-wal", "-journal")]
    return sum(masker.mask_file(side, is_dry=True) for side in sides if side.is_file())


def _erased(name: str, values: int) -> Iterator[ScrubbedPlace]:
    if values:
        yield ScrubbedPlace(name, "erased", values)


def _short_values(masker: ValueMasker) -> Iterator[ScrubbedPlace]:
    if count := len(masker.short_values):
        yield ScrubbedPlace(
            "values that are not distinctive",
            "kept",
            why=(
                f"{count} are short, or integers of few digits: they were masked after the name"
                " of their column, and are proved by column reads."
            ),
        )


def _name(settings: Settings, masker: ValueMasker, file: Path) -> str:
    """Return a path from the home, without values."""
    path = os.fsencode(file.relative_to(settings.home))
    return masker.masked(path).decode(errors="backslashreplace")
