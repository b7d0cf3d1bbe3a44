"""Erases data subjects from every place that is neither a table nor a delivered file.

In files, values are masked with as many bytes: a process that has the file open continues to
read and write it at the same offsets.
"""

import gzip
import os
import re
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from lakehouse.alerts.alert_routes import name_of, read_routes
from lakehouse.alerts.alert_state import state_file, state_lock
from lakehouse.alerts.sinks import FILE_NAME
from lakehouse.errors import LakehouseError, SettingsError
from lakehouse.orchestration.deployment import masking_keys_in_use
from lakehouse.orchestration.incident_reports import reports_file, reports_lock
from lakehouse.privacy.places.dagster_records import connect, delete_dagster_records
from lakehouse.privacy.places.left_folders import is_of_a_process, remove_left_folders
from lakehouse.privacy.places.scrubbed_place import ERASED, ScrubbedPlace
from lakehouse.privacy.verifier.values import ByteSearch, SearchedValues
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.tables.masking import mask
from lakehouse.tables.person import INTEGER, Person, is_distinctive, normal_id

_STORAGES = (
    "storage",
    "run_storage",
    "event_log_storage",
    "schedule_storage",
    "compute_logs",
    "local_artifact_storage",
)
_IN_FOLDERS = ("sqlite", "Sqlite", "Local", "NoOp", "EventLog")
"""Prefixes of Dagster's storages in a folder of this machine, or without data."""


def places_elsewhere(settings: Settings) -> Iterator[ScrubbedPlace]:
    """Yield Dagster's storages, and Spark servers and clusters, outside of the home."""
    file = settings.dagster_home / "dagster.yaml"
    configured = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    for name in _STORAGES:
        storage = (configured or {}).get(name)
        if isinstance(storage, Mapping):
            yield from _storage(settings, name, storage)
    if settings.spark_remote:
        # A tunnel on this machine can lead to a cluster.
        host = urlsplit(settings.spark_remote).hostname
        yield _not_reached(
            f"the Spark Connect server on {host}",
            "Its temporary folders and logs, and those of its executors, are not in the home.",
        )
    elif not settings.spark_master.startswith("local"):
        yield _not_reached(
            f"the Spark cluster of {settings.spark_master}",
            "Its temporary folders and logs are on other machines.",
        )


def sent_alerts(settings: Settings) -> Iterator[ScrubbedPlace]:
    """Yield the recipients of alerts, when the record of alerts contained the person."""
    try:
        urls = read_routes(settings).urls
    except SettingsError as error:
        yield ScrubbedPlace("alerts that were sent", "not reached", why=str(error))
        return
    for url in urls:
        yield _not_reached(
            f"alerts that were sent to {name_of(url)}",
            "The record of alerts contained the person, and sent messages can too.",
        )


def _storage(
    settings: Settings, name: str, configured: Mapping[str, Any]
) -> Iterator[ScrubbedPlace]:
    """Yield a storage of a server, or with a folder outside of the home."""
    configured = configured.get("custom", configured)
    kinds = (
        {configured["class"]: configured.get("config")} if "class" in configured else configured
    )
    for kind, config in kinds.items():
        folder = (config or {}).get("base_dir", str(settings.home))
        # It can be set by a variable of the environment.
        path = Path(folder if isinstance(folder, str) else "/").resolve()
        is_in_home = path.is_relative_to(settings.home.resolve())
        if not (kind.startswith(_IN_FOLDERS) and is_in_home):
            yield _not_reached(
                f"{name} of Dagster: {kind}",
                "dagster.yaml puts it outside of the home, with runs, events, checks or logs.",
            )


def _not_reached(place: str, why: str) -> ScrubbedPlace:
    return ScrubbedPlace(place, "not reached", why=why)


_NAMED_VALUE = rb"""(?<![A-Za-z0-9_])%b\\*["'`]?\s{0,3}(?:==?|=>|:)\s{0,3}\\*["'`]?"""
"""A column and the beginning of its value: `customer_id=7`, `"customer_id": "7"`."""
_VALUE = rb"(?P<value>%b)(?![A-Za-z0-9_]|[.][0-9])"
_AROUND_BYTES = 16
_CHUNK_BYTES = 8 << 20
_MARGIN_BYTES = 4096
"""Read around a chunk, for values at its ends and the names of their columns."""


_COMMON_NAMES = ("id", "key", "name", "value")
"""Fields of many of Dagster's records, which identify no one there."""


class ValueMasker:
    """Finds values that are distinctive anywhere, and others after the name of their column.

    :param shared: personal values that another person has too; they stay.
    :param masking_keys: the keys of masked samples; the masks of the values are erased too.
    :param without: columns after whose names short values are not searched.
    """

    def __init__(
        self,
        persons: Sequence[Person],
        shared: Collection[str],
        masking_keys: Collection[bytes],
        without: Collection[str] = (),
    ) -> None:
        by_column = _values_by_column(persons)
        values = {value for texts in by_column.values() for value in texts} - {*shared}
        delivered = {value for person in persons for value in person.ids}
        masks = {mask(key, text) or "" for key in masking_keys for text in values | delivered}
        people = [*persons, Person("masked", frozenset(masks))]
        self._search = ByteSearch(SearchedValues(people, shared))
        self._margin = max(_MARGIN_BYTES, 2 * self._search.margin)
        short_values = {value for value in values if not is_distinctive(value)}
        self._short = [
            _named_value(column, texts & short_values)
            for column, texts in by_column.items()
            if texts & short_values and column.lower() not in without
        ]

    def has_values(self, content: bytes) -> bool:
        """Return whether bytes contain a value."""
        return bool(self._ranges(content))

    def masked(self, content: bytes) -> bytes:
        """Return bytes without the values."""
        changed = bytearray(content)
        for start, end in self._ranges(content):
            changed[start:end] = _filler(content, start, end)
        return bytes(changed)

    def mask_file(self, file: Path, *, is_dry: bool) -> int:
        """Mask the values in a file, and return their number."""
        erased = 0
        with file.open("rb" if is_dry else "r+b", buffering=0) as opened:
            descriptor = opened.fileno()
            for begin in range(0, os.fstat(descriptor).st_size, _CHUNK_BYTES):
                first = max(0, begin - self._margin)
                length = begin - first + _CHUNK_BYTES + self._margin
                content = os.pread(descriptor, length, first)
                for start, end in self._ranges(content):
                    if not begin <= first + start < begin + _CHUNK_BYTES:
                        continue
                    erased += 1
                    if not is_dry:
                        os.pwrite(descriptor, _filler(content, start, end), first + start)
            if erased and not is_dry:
                os.fsync(descriptor)
        return erased

    def mask_gzip(self, file: Path, *, is_dry: bool) -> int:
        """Mask the values in a gzip file, which is replaced, and return their number."""
        content = gzip.decompress(file.read_bytes())
        erased = len(self._ranges(content))
        if erased and not is_dry:
            mode = file.stat().st_mode & 0o777
            replace_bytes(file, gzip.compress(self.masked(content)), mode=mode)
        return erased

    def _ranges(self, content: bytes) -> list[tuple[int, int]]:
        """Return the start and end of each value, in order."""
        ranges = [hit[:2] for hit in self._search.find(content) if not hit.label.is_shared]
        for pattern in self._short:
            ranges += [match.span("value") for match in pattern.finditer(content)]
        merged: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged


def _values_by_column(persons: Sequence[Person]) -> Mapping[str, set[str]]:
    columns: dict[str, set[str]] = {}
    for person in persons:
        ids = columns.setdefault(person.subject, set())
        ids.update(normal_id(value) for value in person.ids if value.strip())
        for column, values in person.personal.items():
            texts = (value.strip() for value in values)
            columns.setdefault(column, set()).update(filter(None, texts))
    # These replace a value.
    return {column: values - {ERASED, "0"} for column, values in columns.items()}


def _named_value(column: str, values: Collection[str]) -> re.Pattern[bytes]:
    forms = []
    for value in sorted(values, key=len, reverse=True):
        form = re.escape(value.encode("utf-8", "surrogatepass"))
        forms.append(rb"[+]?0*%b(?:[.]0*)?" % form if re.fullmatch(INTEGER, value) else form)
    name = _NAMED_VALUE % re.escape(column.encode())
    return re.compile(name + _VALUE % b"|".join(forms), re.IGNORECASE)


def _filler(content: bytes, start: int, end: int) -> bytes:
    """Return as many bytes as a value has: 0 in place of a number of JSON."""
    length = end - start
    before = content[max(0, start - _AROUND_BYTES) : start].rstrip()
    after = content[end : end + _AROUND_BYTES].lstrip()
    is_in_json = before.endswith((b":", b"[", b",")) and after.startswith((b",", b"]", b"}"))
    if is_in_json and content[start:end].isdigit():
        return b"0".ljust(length)
    text = ERASED.encode() if length >= len(ERASED) else b""
    return text.ljust(length, b"*")


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
    erased_at: datetime | None = None,
    is_dry: bool = False,
) -> tuple[ScrubbedPlace, ...]:
    """Erase persons below the home, except for tables, delivered files and requests.

    After a kill, the next call does the rest. A file that is not text, a database or gzip stays
    as it is: the proof names it if it contains a value.

    :param shared: personal values that another person has too; they stay.
    :param erased_at: when the persons were erased from tables and delivered files: a living Spark
        has no values in what it spilled later. None if they can still be read.
    :param is_dry: only count what would be masked and removed.
    :returns: the places with values, and those that could not be erased.
    """
    people = tuple(persons)
    if not people:
        return ()
    masker = ValueMasker(people, shared, masking_keys_in_use(settings))
    places = list(remove_left_folders(settings, erased_at, is_dry=is_dry))
    # Before logs and alerts, which monitoring would write again from Dagster's records.
    values = ValueMasker(people, shared, (), without=_COMMON_NAMES)
    places += delete_dagster_records(settings, values.has_values, is_dry=is_dry)
    alert_files = [settings.home / FILE_NAME, state_file(settings), reports_file(settings)]
    for file in _home_files(settings, settings.home):
        if file not in alert_files:
            places += _scrub_file(settings, masker, file, is_dry=is_dry)
    alerts = _scrub_alerts(settings, masker, filter(Path.is_file, alert_files), is_dry=is_dry)
    if any(place.values for place in alerts):
        places += sent_alerts(settings)
    return (*places, *alerts, *places_elsewhere(settings))


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


def _name(settings: Settings, masker: ValueMasker, file: Path) -> str:
    """Return a path from the home, without values."""
    path = os.fsencode(file.relative_to(settings.home))
    return masker.masked(path).decode(errors="backslashreplace")
