"""Delivered files that were refused as a whole: each is beside a file that says why."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.storage.object_store import ObjectStore

REASON_ENDING = ".reason.json"
BY_A_PERSON = "rejected by a person"
"""The reason where nothing failed, and a person rejected a file."""
CLOCKS_DIFFER_BY = timedelta(minutes=5)
"""Of this machine and the store, at most."""


@dataclass(frozen=True)
class Rejection:
    """A rejected file, where it is now and why; none of the texts holds a value of a row."""

    key: str
    source_file: str
    why: str
    next_step: str
    rejected_at: datetime
    is_by_a_person: bool


def reason_key(rejected: str) -> str:
    """Return where the reason stands for the file at a rejected key."""
    return f"{rejected}{REASON_ENDING}"


def rejected_keys(
    store: ObjectStore, prefix: str, since: datetime | None = None
) -> dict[str, datetime]:
    """Return the keys of the rejected files below a prefix that have their reason beside them,
    and when each reason was written: anew where the same content is rejected again.

    :param since: leave out those whose reason is older.
    """
    modified = {item.key: item.modified_at for item in store.objects(prefix)}
    keys = {}
    for key in sorted(modified):
        reason_at = modified.get(reason_key(key))
        if reason_at and (since is None or reason_at >= since):
            keys[key] = reason_at
    return keys


def rejected_since(store: ObjectStore, prefix: str, moment: datetime) -> list[Rejection]:
    """Return what was rejected below a prefix since a moment, by whatever process, but for what
    a person rejected.
    """
    keys = rejected_keys(store, prefix, since=moment - CLOCKS_DIFFER_BY)
    return [
        rejection
        for rejection in read_rejections(store, keys)
        if rejection.rejected_at >= moment and not rejection.is_by_a_person
    ]


def read_rejections(store: ObjectStore, keys: Iterable[str]) -> Iterator[Rejection]:
    """Yield the rejections of some keys."""
    for key in keys:
        with store.open(reason_key(key)) as file:
            reason = json.loads(file.read())
        yield Rejection(
            key,
            reason["file"],
            f"{reason['reason']}: found {reason['found']}; expected {reason['expected']}.",
            reason["next_step"],
            datetime.fromisoformat(reason["rejected_at"]),
            reason["reason"] == BY_A_PERSON,
        )
