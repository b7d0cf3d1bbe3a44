"""Reports of feeds whose check by the sensor failed: once per feed, and when resolved."""

from collections.abc import Collection

from lakehouse.orchestration.incident_reports import Report, report_resolved, unresolved_keys
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed

_PREFIX = "feed "
"""The key prefix of these reports; the feed name follows."""


def failed_check_report(feed: Feed, cause: str) -> Report:
    return Report(
        f"{_PREFIX}{feed.name}",
        f"feed {feed.name} could not be checked",
        (cause, "Its files are not ingested automatically until then; they wait in the inbox."),
        (f"lakehouse ingest {feed.name}", "lakehouse doctor"),
        table=feed.table,
    )


def resolve_failed_check(settings: Settings, feed: Feed) -> None:
    """Report a feed as checked again, if it was reported."""
    report_resolved(settings, f"{_PREFIX}{feed.name}", "It was checked again.")


def resolve_removed(settings: Settings, checked: Collection[str]) -> None:
    """Resolve the reports of feeds that are not checked any more, such as removed ones."""
    for key in sorted(unresolved_keys(settings, _PREFIX)):
        if key.removeprefix(_PREFIX) not in checked:
            report_resolved(settings, key, "The sensor does not check it any more.")
