"""Rejected files, each stored with a file that contains the reason."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.errors import FileRejected
from lakehouse.storage.object_store import ObjectStore

REASON_ENDING = ".reason.json"
BY_A_PERSON = "rejected by a person"
"""The reason of a file that a user rejected."""
CLOCKS_DIFFER_BY = timedelta(minutes=5)
"""Maximum clock difference between this machine and the store."""


@dataclass(frozen=True)
class RejectedFile:
    """A file that is rejected, and its new location. The reason contains no values from rows."""

    feed: str
    source_file: str
    sha256: str
    why: FileRejected
    rejected_at: datetime
    key: str = ""

    @property
    def reason_json(self) -> str:
        """The content of its `.reason.json` file."""
        reason = {
            "feed": self.feed,
            "file": self.source_file,
            "sha256": self.sha256,
            "reason": self.why.reason,
            "found": self.why.found,
            "expected": self.why.expected,
            "rejected_at": self.rejected_at.isoformat(),
            "next_step": self.why.next_step,
        }
        return json.dumps(reason, indent=2) + "\n"


@dataclass(frozen=True)
class Rejection:
    """A rejected file, its location and the reason. The texts contain no values from rows."""

    key: str
    source_file: str
    why: str
    next_step: str
    rejected_at: datetime
    is_by_a_person: bool


def reason_key(rejected: str) -> str:
    return f"{rejected}{REASON_ENDING}"


def rejected_keys(
    store: ObjectStore, prefix: str, since: datetime | None = None
) -> dict[str, datetime]:
    """Return rejected files with the time of their reason, not older than `since`."""
    modified = {item.key: item.modified_at for item in store.objects(prefix)}
    keys = {}
    for key in sorted(modified):
        reason_at = modified.get(reason_key(key))
        if reason_at and (since is None or reason_at >= since):
            keys[key] = reason_at
    return keys


def rejected_since(store: ObjectStore, prefix: str, since: datetime) -> list[Rejection]:
    """Return files rejected since a timestamp by any process, except by users."""
    keys = rejected_keys(store, prefix, since=since - CLOCKS_DIFFER_BY)
    return [
        rejection
        for rejection in read_rejections(store, keys)
        if rejection.rejected_at >= since and not rejection.is_by_a_person
    ]


def read_rejections(store: ObjectStore, keys: Iterable[str]) -> Iterator[Rejection]:
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
