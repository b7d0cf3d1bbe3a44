"""State of the files that a feed leaves in its inbox: texts by name, as JSON in `left/`."""

import json
from collections.abc import Mapping

from lakehouse.storage.object_store import ObjectStore


def read_inbox_state(store: ObjectStore, key: str) -> dict[str, str]:
    """Return the recorded texts; empty if there is no state file."""
    try:
        with store.open(key) as note:
            texts: dict[str, str] = json.loads(note.read())
            return texts
    except FileNotFoundError:
        return {}


def write_inbox_state(store: ObjectStore, key: str, texts: Mapping[str, str]) -> None:
    """Replace the state file."""
    store.write_text(key, json.dumps(texts, indent=1, sort_keys=True))
