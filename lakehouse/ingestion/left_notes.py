"""Notes of the files that a feed leaves in its inbox: texts by name, as JSON in `left/`."""

import json
from collections.abc import Mapping

from lakehouse.storage.object_store import ObjectStore


def read_left(store: ObjectStore, key: str) -> dict[str, str]:
    """Return what a note says; nothing where there is none."""
    try:
        with store.open(key) as note:
            noted: dict[str, str] = json.loads(note.read())
            return noted
    except FileNotFoundError:
        return {}


def write_left(store: ObjectStore, key: str, noted: Mapping[str, str]) -> None:
    """Write a note as a whole."""
    store.write_text(key, json.dumps(noted, indent=1, sort_keys=True))
