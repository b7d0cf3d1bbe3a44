"""What is open of checks, tables and feeds that are no longer declared: nothing evaluates,
publishes or runs them again, so that nothing else would resolve it.

A check has the name of its rule and columns, so that it is another one where these change; and
a table that is renamed is another table.
"""

from functools import cache

from lakehouse.monitoring.detectors.failed_checks import key_of
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.detectors.rejected_inbox_files import rejected_prefix
from lakehouse.monitoring.incidents import Firing, Observed, Resolved
from lakehouse.orchestration.asset_keys import asset_key

_FAILED_FEED = "failed feed "


def detect_removed(context: MonitorContext) -> Observed:
    """Return what is resolved since what it was of is no longer declared."""
    # There may be thousands, and most of the time no check is open.
    checks = cache(lambda: frozenset(map(key_of, context.graph.asset_check_keys)))
    resolved: list[Resolved] = []
    for incident in context.state.open.values():
        firing = incident.firing
        removed = ""
        if firing.kind == "check" and firing.key not in checks():
            removed = "check"
        elif _is_of_removed_feed(context, firing):
            removed = "feed"
        elif _is_of_removed_table(context, firing):
            removed = "table"
        if removed:
            how = f"The {removed} is no longer declared."
            resolved.append(Resolved(firing.key, context.now, how))
    return Observed(tuple(resolved))


def _is_of_removed_feed(context: MonitorContext, firing: Firing) -> bool:
    if firing.kind == "rejected":
        return not any(firing.key.startswith(rejected_prefix(feed)) for feed in context.feeds)
    if firing.kind != "failed" or not firing.key.startswith(_FAILED_FEED):
        return False
    return firing.key.removeprefix(_FAILED_FEED) not in {feed.name for feed in context.feeds}


def _is_of_removed_table(context: MonitorContext, firing: Firing) -> bool:
    table = firing.table
    if firing.kind == "upkeep":
        # Declared tables are kept that no asset computes.
        return table not in context.declared and not context.graph.has(asset_key(table))
    is_of_table = firing.key in (f"blocked {table}", f"failed {table}")
    return is_of_table and not context.graph.has(asset_key(table))
