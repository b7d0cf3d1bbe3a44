"""Feeds that a sensor could not look at: people are told of each once, and when that is over."""

from collections.abc import Collection

from lakehouse.orchestration.incident_reports import Report, report_resolved, unresolved_keys
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed

_PREFIX = "feed "
"""Before the name of the feed, in the key of a report."""


def unlooked(feed: Feed, cause: str) -> Report:
    """Return the report that a feed could not be looked at."""
    return Report(
        f"{_PREFIX}{feed.name}",
        f"feed {feed.name} could not be looked at",
        (cause, "No file of it is ingested by itself until that ends; nothing is lost."),
        (f"lakehouse ingest {feed.name}", "lakehouse doctor"),
        table=feed.table,
    )


def resolve_looked(settings: Settings, feed: Feed) -> None:
    """Report that a feed was looked at, where it could not be before."""
    report_resolved(settings, f"{_PREFIX}{feed.name}", "It was looked at again.")


def resolve_removed(settings: Settings, looked_at: Collection[str]) -> None:
    """Report as resolved what was reported of other feeds than those that are looked at: such as
    of one that is no longer declared.

    :param looked_at: names of feeds.
    """
    for key in sorted(unresolved_keys(settings, _PREFIX)):
        if key.removeprefix(_PREFIX) not in looked_at:
            report_resolved(settings, key, "The sensor looks at it no more.")
