"""Skipped inbox entries: links and pipes, each reported once, and hidden or unfinished files."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from lakehouse.ingestion.archive_names import file_format
from lakehouse.orchestration.incident_reports import (
    Report,
    report_firing,
    report_resolved,
    unresolved_keys,
)
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore, PassedOver
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shown, visible

_MOST = 20
_HIDDEN = "hidden or unfinished by its name"
_RENAME = "Rename it to have it ingested."
_UNFINISHED_ENDING = re.compile(r"\.[a-z]+$|~$", re.IGNORECASE)
_NEXT_STEP = "Copy the file itself into the inbox, or remove this from it."


def passed_over_lines(entries: Sequence[PassedOver], next_step: str = "") -> tuple[str, ...]:
    """Describe skipped entries, limited to a maximum number."""
    more = len(entries) - _MOST
    lines = tuple(
        f"{_title(entry)}. {next_step or _next_step(entry)}" for entry in entries[:_MOST]
    )
    return (*lines, f"{more:,} more are passed over.") if more > 0 else lines


def hidden_files(feed: Feed, store: ObjectStore) -> list[PassedOver]:
    """Return files that look like the feed's but have a hidden or unfinished name."""
    return [
        PassedOver(item.key, _HIDDEN)
        for item in store.unfinished(feed.inbox)
        if _is_like_own(feed, item.key)
    ]


def _is_like_own(feed: Feed, key: str) -> bool:
    # Only the ending remains of `..csv`.
    name = f"x.{PurePosixPath(key).name.lstrip('.~')}"
    return any(file_format(feed, name) for name in (name, _UNFINISHED_ENDING.sub("", name)))


def report_passed_over(
    settings: Settings, feed: Feed, entries: Sequence[PassedOver]
) -> list[str]:
    """Report new skipped entries and resolve removed ones; return a line per new entry."""
    reported = unresolved_keys(settings, feed.inbox)
    present = {visible(entry.key) for entry in entries}
    for key in reported - present:
        report_resolved(settings, key, "It is no longer in the inbox.")
    unreported = [entry for entry in entries if visible(entry.key) not in reported]
    new = unreported[: max(0, _MOST - len(reported & present))]
    for entry in new:
        # A name that is not UTF-8 cannot be written.
        key, title = visible(entry.key), f"feed {feed.name}: {_title(entry)}"
        report_firing(
            settings,
            Report(key, title, (_next_step(entry),), severity="warn", table=feed.table),
        )
    return [f"{_title(entry)}. {_next_step(entry)}" for entry in new]


def _next_step(entry: PassedOver) -> str:
    return _RENAME if entry.kind == _HIDDEN else _NEXT_STEP


def _title(entry: PassedOver) -> str:
    return f"{shown(entry.key)} is {entry.kind}, and is passed over"
