"""All other files below the home, each treated by what it is; what cannot be read is said, and not
taken for clean.
"""

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lakehouse.privacy.places.alert_files import alert_files
from lakehouse.privacy.places.contents import GZIP, PICKLE, is_pickle, is_text
from lakehouse.privacy.places.left_folders import is_of_a_process
from lakehouse.privacy.places.sqlite_file import HEADER, SIDES
from lakehouse.privacy.verifier.roots import leads_out
from lakehouse.settings import Settings

NOT_HERE = ("warehouse", "inbox", "archive", "rejected", "privacy")
"""Folders of tables' files, of delivered files and of requests: other parts erase there."""
_OF_THE_OPERATOR = ("alerts.toml", "masking.key", "dagster/dagster.yaml")
_IS_LOG = re.compile(r".*[.](log([.]\d+)?|jsonl|out|err)")
_HEAD_BYTES = 1 << 16
"""How much of the beginning and the end of a file tells what it is."""


class Kind(Enum):
    """What a file is, by its place, its name and how it begins."""

    SQLITE = "SQLite"
    TEXT = "text"
    GZIP = "gzip"
    SETTING = "a setting"
    LINK = "a link to elsewhere"
    BINARY = "of an unknown kind"
    UNREADABLE = "closed to this user"


@dataclass(frozen=True)
class HomeFile:
    """A file that is looked through by itself."""

    path: Path
    kind: Kind


def home_files(settings: Settings) -> Iterator[HomeFile]:
    """Yield the files that no other part of an erasure looks through, SQLite's first: what stands
    there is told anew, in alerts and in logs.
    """
    files = list(_files(settings))
    files.sort(key=lambda file: (file.kind is not Kind.SQLITE, file.path))
    yield from files


def _files(settings: Settings) -> Iterator[HomeFile]:
    guarded = {*alert_files(settings)}
    for path in _walk(settings.home, settings):
        if path in guarded or is_of_a_process(settings, path):
            continue
        kind = _kind(settings, path)
        if kind is not None:
            yield HomeFile(path, kind)


def _walk(folder: Path, settings: Settings) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError:
        yield folder
        return
    for path in entries:
        if path.parent == settings.home and path.name in NOT_HERE:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, settings)
        else:
            yield path


def _kind(settings: Settings, path: Path) -> Kind | None:
    """Return what a file is; None of one that holds nothing, is gone, or is a part of another."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return Kind.LINK if leads_out(path, settings.home) else None
        if stat.S_ISDIR(status.st_mode):
            return Kind.UNREADABLE
        if not stat.S_ISREG(status.st_mode) or not status.st_size or _is_a_side(path):
            return None
        if str(path.relative_to(settings.home)) in _OF_THE_OPERATOR:
            return Kind.SETTING
        kind = _kind_of_content(path, status.st_size)
        # A log that was cut while it was written may have a gap.
        return Kind.TEXT if kind is Kind.BINARY and _IS_LOG.fullmatch(path.name) else kind
    except FileNotFoundError:
        return None
    except OSError:
        return Kind.UNREADABLE


def _kind_of_content(path: Path, size: int) -> Kind:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if head.startswith(HEADER):
            return Kind.SQLITE
        if head.startswith(GZIP):
            return Kind.GZIP
        if head.startswith(PICKLE):
            return Kind.TEXT if is_pickle(head + file.read()) else Kind.BINARY
        # At an even place, as characters of two bytes begin.
        file.seek(max(0, size - _HEAD_BYTES) // 2 * 2)
        tail = file.read()
    return (
        Kind.TEXT if is_text(head) and (size <= _HEAD_BYTES or is_text(tail)) else Kind.BINARY
    )


def _is_a_side(path: Path) -> bool:
    """Whether a file belongs to an SQLite file beside it."""
    for side in SIDES:
        if path.name.endswith(side):
            return path.with_name(path.name.removesuffix(side)).is_file()
    return False
