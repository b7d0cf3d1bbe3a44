"""Which delivered files were rewritten without erased people, where tables are copied: it lies with
the delivered files, in the home or in the bucket.

Without it a file that was rewritten is another delivery at the other place, and lands its rows a
second time.
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
    """Copy what is noted of each content, and add to what the target notes of it; return the keys
    of what is new there.

    It can be killed anywhere and done again. What the target alone notes stays.

    :raises LakehouseError: when one of the notes cannot be read.
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


def _together(noted: list[Any], known: list[Any]) -> list[Any]:
    """Return what either place notes, in the order in which files were rewritten; what the target
    knows, where that is all.
    """
    if all(one in known for one in noted):
        return known
    return [*noted, *(one for one in known if one not in noted)]


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
