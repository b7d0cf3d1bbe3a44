"""Tables that are older than their declaration allows, and feeds whose next delivery is
overdue.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import history_of
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed, moment_text
from lakehouse.orchestration.asset_keys import asset_key


def detect_overdue(context: MonitorContext) -> Observed:
    """Return what is overdue now; what was never written is not."""
    catalog = Catalog.of(context.settings)
    facts = (*_overdue_feeds(context, catalog), *_overdue_tables(context, catalog))
    return Observed(facts, frozenset({"overdue"}))


def _overdue_feeds(context: MonitorContext, catalog: Catalog) -> Iterator[Firing]:
    for feed in context.feeds:
        written = _written_at(catalog, feed.table) if feed.expected_within else None
        if written and feed.expected_within and context.now - written > feed.expected_within:
            title = f"feed {feed.name}: the next delivery is overdue"
            command = f"lakehouse ingest {feed.name}"
            yield _firing(
                context,
                f"overdue feed {feed.name}",
                title,
                feed.table,
                written,
                feed.expected_within,
                command,
            )


def _overdue_tables(context: MonitorContext, catalog: Catalog) -> Iterator[Firing]:
    for table in context.declared.values():
        written = _fresh_at(context, catalog, table.name) if table.freshness else None
        if written and table.freshness and context.now - written > table.freshness:
            yield _firing(
                context,
                f"overdue {table.name}",
                f"{table.name} is overdue",
                table.name,
                written,
                table.freshness,
                f"lakehouse retry {table.name}",
            )


def _firing(
    context: MonitorContext,
    key: str,
    title: str,
    table: str,
    written: datetime,
    allowed: timedelta,
    command: str,
) -> Firing:
    age = _describe_span(context.now - written)
    return Firing(
        key,
        "overdue",
        # The moment when it became overdue is the same in each round.
        written + allowed,
        "error",
        title,
        (
            (
                f"{table} was last written at {moment_text(written)}, {age} ago;"
                f" {_describe_span(allowed)} are allowed."
            ),
            *context.describe_ownership(table),
        ),
        context.links(table=table),
        (command, f"lakehouse history {table}"),
        table,
        context.owner(table),
        brief=f"{age} old",
    )


def _fresh_at(context: MonitorContext, catalog: Catalog, table: str) -> datetime | None:
    """Return when a table was last written, or found by a run to be as it should."""
    written = _written_at(catalog, table)
    event = context.instance.get_latest_materialization_event(asset_key(table))
    if event is None or written is None:
        return written
    return max(written, datetime.fromtimestamp(event.timestamp, UTC))


def _written_at(catalog: Catalog, table: str) -> datetime | None:
    return history_of(table, catalog.load(table)).written_at if catalog.has(table) else None


def _describe_span(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"
