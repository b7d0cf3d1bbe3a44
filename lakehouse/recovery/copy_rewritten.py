"""Copy the ledger of rewritten files, which is stored with the delivered files in the home or
the bucket.

Without it, a rewritten file is a new delivery at the target and its rows land again.
"""

import json
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import REWRITTEN

_LISTS = ("changes", "form_of")


def copy_rewritten(source: Settings, target: Settings) -> list[str]:
    """Copy the ledger entries of each content and merge them into the target's; return the
    changed keys.

    The operation is idempotent. Entries that only the target has are retained.

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
