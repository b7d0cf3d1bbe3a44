"""Who is gone: the people that were erased, as keyed hashes; whatever writes rows asks here, so
that they stay gone.

A person takes about 200 bytes of memory in each process that asks. The list is read once, and
again only after its file changed; a home where nobody was erased has none.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.privacy.folder import privacy_folder
from lakehouse.privacy.hmac_key import hmac_key
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import brief_lock
from lakehouse.storage.json_files import read_json, write_json
from lakehouse.tables.person import person_hmac

_AUDIT = "audit.gdpr_actions"
_ERASED = ("files_rewritten", "rows_erased", "logically_deleted", "verified")


@dataclass(frozen=True)
class GonePerson:
    """A person that was erased, and when."""

    subject: str
    hmac: str
    erased_at: datetime
    allowed_by: str = ""
    """Who allowed new rows of the person; empty for a person who stays erased."""
    allowed_why: str = ""


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


def read_audited(settings: Settings) -> GoneList:
    """Return the list, which has the erasures that `audit.gdpr_actions` records.

    :raises LakehouseError: when the list is missing or older.
    """
    version = gone_version(settings)
    catalog = Catalog.of(settings)
    if catalog.has(_AUDIT):
        snapshot_id = catalog.load(_AUDIT).metadata.current_snapshot_id
        _check_audited(settings, version, snapshot_id)
    return _read_version(settings, version)


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


def allow_again(
    settings: Settings, hmacs: Iterable[str], *, by: str = "unknown", why: str = ""
) -> None:
    """Let new rows of erased people land again."""

    def allow(known: dict[str, GonePerson]) -> None:
        for digest in hmacs:
            person = known.get(digest)
            if person and not person.allowed_by:
                known[digest] = replace(person, allowed_by=by, allowed_why=why)

    _change(settings, allow)


@lru_cache(maxsize=1)
def _check_audited(settings: Settings, version: str, snapshot_id: int | None) -> None:
    table = Catalog.of(settings).load(_AUDIT)
    scan = table.scan(snapshot_id=snapshot_id, selected_fields=("at", "action", "request"))
    actions = scan.to_arrow().to_pylist()
    erased = {one["request"] for one in actions if one["action"] in _ERASED}
    begun = [
        one for one in actions if one["action"] == "requested" and one["request"] in erased
    ]
    listed = [person.erased_at for person in _read(_file(settings))] if version else []
    newest = max(begun, key=itemgetter("at"), default=None)
    if newest is None or (listed and max(listed) >= newest["at"]):
        return
    raise LakehouseError(
        f"{_file(settings)} is {'older' if listed else 'missing'}: {_AUDIT} records the erasure of"
        f" request {newest['request']}; without it, rows of erased people would return.",
        next_step="Put a copy of privacy/ back, or erase the people again by new requests.",
    )


@lru_cache(maxsize=1)
def _read_version(settings: Settings, version: str) -> GoneList:
    people = _read(_file(settings)) if version else []
    people = [person for person in people if not person.allowed_by]
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
    return brief_lock(privacy_folder(settings) / ".gone.lock")
