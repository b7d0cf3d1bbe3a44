"""The stored suppression list: keyed hashes of erased people, whose rows are excluded from writes.

A person takes about 200 bytes of memory in each process. The file is read once, and again only
after it changed; a home without erased people has none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.erasure.suppression_list import ErasedIds
from lakehouse.privacy.folder import hmac_key, privacy_folder
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import brief_lock
from lakehouse.storage.json_files import read_json, write_json

_AUDIT = "audit.gdpr_actions"
_ERASED = ("files_rewritten", "rows_erased", "logically_deleted", "verified")


@dataclass(frozen=True)
class SuppressedPerson:
    """An erased person, whose rows are excluded."""

    subject: str
    hmac: str
    erased_at: datetime
    allowed_by: str = ""
    """Who allowed new rows of the person; empty for a person who stays erased."""
    allowed_why: str = ""


def read_suppressed(settings: Settings) -> ErasedIds:
    """Return the list; the file is read only if it changed."""
    return _read_version(settings, _version(settings))


def _version(settings: Settings) -> str:
    try:
        status = _file(settings).stat()
    except FileNotFoundError:
        return ""
    # Each change replaces the file.
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"


def read_audited(settings: Settings) -> ErasedIds:
    """Return the list after comparing it with `audit.gdpr_actions`.

    :raises LakehouseError: if the list is missing or older than a recorded erasure.
    """
    version = _version(settings)
    catalog = Catalog.of(settings)
    if catalog.has(_AUDIT):
        snapshot_id = catalog.load(_AUDIT).metadata.current_snapshot_id
        _check_audited(settings, version, snapshot_id)
    return _read_version(settings, version)


def add_suppressed(settings: Settings, people: Iterable[SuppressedPerson]) -> None:
    """Add people to the list; for a person who was erased again, the last time counts."""

    def add(known: dict[str, SuppressedPerson]) -> None:
        for person in people:
            former = known.get(person.hmac)
            if former is None or former.erased_at < person.erased_at:
                known[person.hmac] = person

    _change(settings, add)


def allow_again(
    settings: Settings, hmacs: Iterable[str], *, by: str = "unknown", why: str = ""
) -> None:
    """Allow new rows of erased people."""

    def allow(known: dict[str, SuppressedPerson]) -> None:
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
    requested = [one for one in actions if one["action"] == "requested"]
    newest = max(
        (one for one in requested if one["request"] in erased),
        key=itemgetter("at"),
        default=None,
    )
    listed = [person.erased_at for person in _read(_file(settings))] if version else []
    if newest is None or (listed and max(listed) >= newest["at"]):
        return
    raise LakehouseError(
        f"{_file(settings)} is {'older' if listed else 'missing'}: {_AUDIT} records the erasure of"
        f" request {newest['request']}; without it, rows of erased people would return.",
        next_step="Restore a copy of privacy/, or erase the people again by new requests.",
    )


@lru_cache(maxsize=1)
def _read_version(settings: Settings, version: str) -> ErasedIds:
    people = _read(_file(settings)) if version else []
    people = [person for person in people if not person.allowed_by]
    if not people:
        return ErasedIds()
    erased_at = {bytes.fromhex(person.hmac): person.erased_at for person in people}
    return ErasedIds(hmac_key(settings, is_needed=True), erased_at)


def _change(settings: Settings, change: Callable[[dict[str, SuppressedPerson]], None]) -> None:
    file = _file(settings)
    with brief_lock(privacy_folder(settings) / ".gone.lock"):
        known = {person.hmac: person for person in _read(file)}
        before = dict(known)
        change(known)
        if known != before:
            people = sorted(known.values(), key=lambda person: (person.erased_at, person.hmac))
            write_json(file, people, list[SuppressedPerson])


def _read(file: Path) -> list[SuppressedPerson]:
    people: list[SuppressedPerson] = (
        read_json(file, list[SuppressedPerson]) if file.is_file() else []
    )
    return people


def _file(settings: Settings) -> Path:
    return settings.home / "privacy" / "gone.json"
