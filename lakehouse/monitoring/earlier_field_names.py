"""Names of incidents in the files of version 0.1, which are read on."""

from typing import Any

_FIELDS = {
    "broke": "firing",
    "extent": "affected_partitions",
    "held": "deferred",
    "told_at": "notified_at",
    "told_causes": "notified_causes",
    "told_size": "notified_size",
}
_KINDS = {"held": "blocked", "late": "overdue", "looking": "monitor"}
_KEYS = {"held ": "blocked ", "late ": "overdue ", "looking at ": "monitoring "}


def rename_key(key: str) -> str:
    """Return an incident's key as it is called today."""
    for earlier, now in _KEYS.items():
        if key.startswith(earlier):
            return now + key.removeprefix(earlier)
    return key


def rename_fields(content: Any) -> Any:
    """Return a piece of JSON with today's names of fields, kinds and keys at every depth."""
    if isinstance(content, list):
        return [rename_fields(item) for item in content]
    if not isinstance(content, dict):
        return content
    renamed = {_FIELDS.get(name, name): rename_fields(value) for name, value in content.items()}
    if "key" in renamed:
        renamed["key"] = rename_key(renamed["key"])
    if "kind" in renamed:
        renamed["kind"] = _KINDS.get(renamed["kind"], renamed["kind"])
    return renamed
