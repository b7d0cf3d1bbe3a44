"""What stands in an inbox and is no file, such as a link or a pipe: nobody takes it, and people
are told once.
"""

from collections.abc import Sequence

from lakehouse.orchestration.incident_reports import (
    Report,
    read_reports,
    report_firing,
    report_resolved,
)
from lakehouse.settings import Settings
from lakehouse.storage.object_store import PassedOver
from lakehouse.tables.escaping import shown, visible
from lakehouse.tables.feed import Feed

_MOST = 20
_NEXT_STEP = "Copy the file itself into the inbox, or take this out of it."


def passed_over_lines(
    found: Sequence[PassedOver], next_step: str = _NEXT_STEP
) -> tuple[str, ...]:
    """Say of each that nobody takes it; of many, say how many more there are."""
    more = len(found) - _MOST
    lines = tuple(f"{_title(one)}. {next_step}" for one in found[:_MOST])
    return (*lines, f"{more:,} more are passed over.") if more > 0 else lines


def tell_passed_over(settings: Settings, feed: Feed, found: Sequence[PassedOver]) -> list[str]:
    """Report as a warning what is there anew, and as mended what is gone; return what was said
    for the first time.
    """
    told, there = _told(settings, feed), {visible(one.key) for one in found}
    for key in told - there:
        report_resolved(settings, key, "It is no longer in the inbox.")
    # What was told takes the place of what came since, whatever their names are.
    new = [one for one in found if visible(one.key) not in told][
        : max(0, _MOST - len(told & there))
    ]
    for one in new:
        title = f"feed {feed.name}: {_title(one)}"
        # A name that is no UTF-8 could not be written.
        report_firing(
            settings,
            Report(visible(one.key), title, (_NEXT_STEP,), severity="warn", table=feed.table),
        )
    return [f"{_title(one)}. {_NEXT_STEP}" for one in new]


def _told(settings: Settings, feed: Feed) -> set[str]:
    """Return the keys that were reported and are not mended since."""
    notes = {note.report.key: note for note in read_reports(settings)}
    return {
        key for key, note in notes.items() if key.startswith(feed.inbox) and not note.resolved
    }


def _title(one: PassedOver) -> str:
    return f"{shown(one.key)} is {one.kind}, and is passed over"
