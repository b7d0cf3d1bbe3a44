"""Copy the erasure records and keys of a home."""

import json
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import REWRITTEN

_LISTS = ("changes", "form_of")
_SUPPRESSED, _KEY = "gone.json", "hmac.key"
_MASKING_KEY = "masking.key"
_AUDIT = "audit.gdpr_actions"
_ORDER = {_KEY: 0, _SUPPRESSED: 2}
"""The order in which files are copied; other files are in between."""


def copy_rewritten(source: Settings, target: Settings) -> list[str]:
    """Merge the ledger entries of each content into the target's; return the changed keys.

    :raises LakehouseError: if an entry cannot be read.
    """
    read, written = open_store(source), open_store(target)
    there = _keys(written)
    copied = []
    for key in sorted(_keys(read)):
        note = _read(read, key)
        known = _read(written, key) if key in there else {name: [] for name in _LISTS}
        merged = {name: _together(note[name], known[name]) for name in _LISTS}
        if key not in there or merged != known:
            written.write_text(key, json.dumps(merged) + "\n")
            copied.append(key)
    return copied


def _keys(store: ObjectStore) -> set[str]:
    return {item.key for item in store.objects(REWRITTEN)}


def _together(entries: list[Any], known: list[Any]) -> list[Any]:
    """Merge the changes of both ledgers in order; return the target's if it is complete."""
    if all(one in known for one in entries):
        return known
    return [*entries, *(one for one in known if one not in entries)]


def _read(store: ObjectStore, key: str) -> dict[str, list[Any]]:
    with store.open(key) as file:
        text = file.read()
    try:
        note = json.loads(text)
        return {name: list(note[name]) for name in _LISTS}
    except (ValueError, LookupError, TypeError) as error:
        raise LakehouseError(
            f"{store.uri(key)} is not what the lakehouse wrote there: found"
            f" {type(error).__name__}; expected its own JSON. Nothing was copied.",
            next_step="Put a copy of it back: without it, erased rows may come back.",
        ) from error


def check_suppression(source: Settings, target: Settings) -> None:
    """Check that the target only knows erased data subjects that the source knows.

    It may know fewer, if a copy was killed and an erasure followed.

    :raises LakehouseError: if it knows others, whose rows would be restored, or uses another
        hash key, which would match no one.
    """
    if source.home == target.home:
        return
    keys = [_content(settings, _KEY) for settings in (source, target)]
    known = [_suppressed(settings) for settings in (source, target)]
    has_one_key = keys[0] == keys[1] or not keys[1] or not (known[0] or known[1])
    if known[1] <= known[0] and has_one_key:
        return
    raise LakehouseError(
        f"{target.home}/privacy has erased people that {source.home}/privacy lacks, or another"
        " key; expected a subset of these people and the same key. Nothing was copied.",
        next_step=(
            "Copy to a place without erasures, or erase the same people in both, with the same"
            " hmac.key."
        ),
    )


def copy_erasure_records(source: Settings, target: Settings) -> list[str]:
    """Copy missing erasure records and keys, and return the copied names.

    The suppression list is last, since it is useless without its key.
    """
    copied = copy_rewritten(source, target)
    if source.home == target.home:
        return copied
    for file in _to_copy(source):
        name = str(file.relative_to(source.home))
        place = target.home / name
        content = (
            _merged_suppression(source, target)
            if file.name == _SUPPRESSED
            else file.read_bytes()
        )
        if place.exists() and (file.name != _SUPPRESSED or place.read_bytes() == content):
            continue
        target.make_home()
        # No other user may access a folder with a key.
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_bytes(place, content)
        copied.append(name)
    return copied


def count_new_erasures(source: Settings, target: Settings) -> int:
    """Return how many data subjects are erased at the source but not known at the target."""
    return len(_suppressed(source) - _suppressed(target))


def check_records_of_erasures(source: Settings, catalog: Catalog) -> None:
    """Check that the erasure records of a bucket are in the home: the environment may name
    another home.

    :raises LakehouseError: if the bucket has audited erasures but the home has no key.
    """
    if source.deployment != "aws" or _content(source, _KEY) or not catalog.has(_AUDIT):
        return
    actions = catalog.load(_AUDIT).scan().count()
    if actions:
        raise LakehouseError(
            f"{_AUDIT} in s3://{source.bucket} records {actions} actions of erasures, and"
            f" {source.home}/privacy has no {_KEY}; expected the home that is used for erasures"
            " from that bucket, since only it has their records. Nothing was copied.",
            next_step="Set LAKEHOUSE_HOME to that home, and copy again.",
        )


def check_no_new_erasures(source: Settings, target: Settings) -> None:
    """Check that the target knows all erased data subjects of the source.

    :raises LakehouseError: if a data subject was erased since the copy started.
    """
    if count_new_erasures(source, target):
        raise LakehouseError(
            f"People were erased from {source.home} while its tables were copied; expected none."
            " The table that was copied at that moment was not registered.",
            next_step=(
                "Run the same command again. If it rejects tables that were copied before and"
                " contain their rows, drop these at the other place and run it again."
            ),
        )


def _to_copy(settings: Settings) -> list[Path]:
    """Return the erasure records and keys, in the order in which they depend on each other."""
    files = [*_files(settings), settings.home / _MASKING_KEY]
    return sorted(filter(Path.is_file, files), key=lambda file: _ORDER.get(file.name, 1))


def _merged_suppression(source: Settings, target: Settings) -> bytes:
    """Return the source's suppression list, with later erasures at the target merged."""
    content = _content(source, _SUPPRESSED)
    people = {person["hmac"]: person for person in json.loads(content)}
    merged = dict(people)
    for person in _people(target):
        if person.get("erased_at", "") > people[person["hmac"]].get("erased_at", ""):
            merged[person["hmac"]] = person
    return content if merged == people else json.dumps(list(merged.values())).encode()


def _files(settings: Settings) -> list[Path]:
    """Return the erasure records of a home, without locks."""
    folder = settings.home / "privacy"
    found = sorted(folder.rglob("*")) if folder.is_dir() else []
    known = [path for path in found if path.is_file() and not path.name.startswith(".")]
    # The ledger is copied with the delivered files.
    rewritten = settings.home / REWRITTEN
    return [path for path in known if not path.is_relative_to(rewritten)]


def _suppressed(settings: Settings) -> set[str]:
    return {person["hmac"] for person in _people(settings)}


def _people(settings: Settings) -> list[dict[str, str]]:
    content = _content(settings, _SUPPRESSED)
    people: list[dict[str, str]] = json.loads(content) if content else []
    return people


def _content(settings: Settings, name: str) -> bytes:
    path = settings.home / "privacy" / name
    return path.read_bytes() if path.is_file() else b""
