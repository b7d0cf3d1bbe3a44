"""Who is gone: the people that were erased, as keyed hashes; whatever writes rows asks here, so
that they stay gone.

A person takes about 200 bytes of memory in each process that asks. The list is read once, and
again only after its file changed; a home where nobody was erased has none.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from lakehouse.privacy.folder import privacy_folder
from lakehouse.privacy.person_hmac import hmac_key, person_hmac
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import BRIEF_SECONDS, busy_file, file_lock
from lakehouse.storage.json_files import read_json, write_json


@dataclass(frozen=True)
class GonePerson:
    """A person that was erased, and when."""

    subject: str
    hmac: str
    erased_at: datetime


@dataclass(frozen=True)
class GoneList:
    """Who is gone, as of a version of the list."""

    version: str
    """Another text where the list is another; empty where there is none."""
    key: bytes | None = field(repr=False)
    erased_at: Mapping[bytes, datetime] = field(repr=False)
    """When a person was last erased, by their keyed hash."""

    @property
    def is_empty(self) -> bool:
        """Whether nobody is gone, so that no row has to be looked at."""
        return not self.erased_at

    def is_gone(self, names: Iterable[str], value: str) -> datetime | None:
        """Return when a person was erased; None for who was not.

        :param names: all that tables call the subject (`Subject.names`), under any of which the
            person may have been erased.
        :param value: an id, in whatever form.
        """
        if self.is_empty or self.key is None:
            return None
        found = []
        for name in {one.lower() for one in names}:
            digest = bytes.fromhex(person_hmac(self.key, name, value))
            if digest in self.erased_at:
                found.append(self.erased_at[digest])
        return max(found, default=None)


def gone_version(settings: Settings) -> str:
    """Return the version of the list of who is gone, by one look at its file; empty where there
    is none.
    """
    try:
        seen = _file(settings).stat()
    except FileNotFoundError:
        return ""
    # Each change is another file, moved to its place.
    return f"{seen.st_ino}-{seen.st_mtime_ns}-{seen.st_size}"


def read_gone(settings: Settings) -> GoneList:
    """Return who is gone; read again only where that changed."""
    return _read_version(settings, gone_version(settings))


def is_gone(settings: Settings, names: Iterable[str], value: str) -> datetime | None:
    """Return when a person was erased; None for who was not (see `GoneList.is_gone`)."""
    return read_gone(settings).is_gone(names, value)


def add_gone(settings: Settings, people: Iterable[GonePerson]) -> None:
    """Add people to those who are gone; of who was erased again, the last time counts."""

    def add(known: dict[str, GonePerson]) -> None:
        for person in people:
            former = known.get(person.hmac)
            if former is None or former.erased_at < person.erased_at:
                known[person.hmac] = person

    _change(settings, add)


def allow_again(settings: Settings, hmacs: Iterable[str]) -> None:
    """Take people from those who are gone, so that rows of theirs are taken again."""

    def allow(known: dict[str, GonePerson]) -> None:
        for digest in hmacs:
            known.pop(digest, None)

    _change(settings, allow)


@lru_cache(maxsize=1)
def _read_version(settings: Settings, version: str) -> GoneList:
    people = _read(_file(settings)) if version else []
    erased_at = {bytes.fromhex(person.hmac): person.erased_at for person in people}
    return GoneList(version, hmac_key(settings, is_needed=True) if people else None, erased_at)


def _change(settings: Settings, change: Callable[[dict[str, GonePerson]], None]) -> None:
    with _lock(settings):
        file = _file(settings)
        known = {person.hmac: person for person in _read(file)}
        before = dict(known)
        change(known)
        if known != before:
            people = sorted(known.values(), key=lambda person: (person.erased_at, person.hmac))
            write_json(file, people, list[GonePerson])


def _read(file: Path) -> list[GonePerson]:
    people: list[GonePerson] = read_json(file, list[GonePerson]) if file.is_file() else []
    return people


def _file(settings: Settings) -> Path:
    return settings.home / "privacy" / "gone.json"


def _lock(settings: Settings) -> AbstractContextManager[None]:
    file = privacy_folder(settings) / ".gone.lock"
    return file_lock(file, BRIEF_SECONDS, busy_file(file))
