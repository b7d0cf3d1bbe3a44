"""What stands in an inbox and is no file, such as a link or a pipe: it is passed over, and people
are notified once.
"""

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
from lakehouse.tables.escaping import shown, visible
from lakehouse.tables.feed import Feed

_MOST = 20
_RENAME = "Rename it to have it ingested."
_UNFINISHED_ENDING = re.compile(r"\.[a-z]+$|~$", re.IGNORECASE)
_NEXT_STEP = "Copy the file itself into the inbox, or remove this from it."


def passed_over_lines(
    entries: Sequence[PassedOver], next_step: str = _NEXT_STEP
) -> tuple[str, ...]:
    """Say of each that it is passed over; of many, say how many more there are."""
    more = len(entries) - _MOST
    lines = tuple(f"{_title(entry)}. {next_step}" for entry in entries[:_MOST])
    return (*lines, f"{more:,} more are passed over.") if more > 0 else lines


def hidden_file_lines(feed: Feed, store: ObjectStore) -> tuple[str, ...]:
    """Say which files wait in the inbox of a feed that look like its own, and that their names
    call hidden or unfinished.
    """
    hidden = [
        PassedOver(item.key, "hidden or unfinished by its name")
        for item in store.unfinished(feed.inbox)
        if _is_like_own(feed, item.key)
    ]
    return passed_over_lines(hidden, _RENAME)


def _is_like_own(feed: Feed, key: str) -> bool:
    """Whether a file would be one of the feed, were it named otherwise."""
    name = PurePosixPath(key).name.lstrip(".~")
    return any(file_format(feed, name) for name in (name, _UNFINISHED_ENDING.sub("", name)))


def report_passed_over(
    settings: Settings, feed: Feed, entries: Sequence[PassedOver]
) -> list[str]:
    """Report as a warning what is there anew, and as resolved what is gone; return the lines of
    what is reported for the first time.
    """
    reported = unresolved_keys(settings, feed.inbox)
    present = {visible(entry.key) for entry in entries}
    for key in reported - present:
        report_resolved(settings, key, "It is no longer in the inbox.")
    # What was reported takes the place of what came since, whatever their names are.
    room = max(0, _MOST - len(reported & present))
    new = [entry for entry in entries if visible(entry.key) not in reported][:room]
    for entry in new:
        # A name that is no UTF-8 could not be written.
        key, title = visible(entry.key), f"feed {feed.name}: {_title(entry)}"
        report_firing(
            settings, Report(key, title, (_NEXT_STEP,), severity="warn", table=feed.table)
        )
    return [f"{_title(entry)}. {_NEXT_STEP}" for entry in new]


def _title(entry: PassedOver) -> str:
    return f"{shown(entry.key)} is {entry.kind}, and is passed over"
