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
    catalog = context.catalog
    facts: list[Firing] = []
    for feed in context.feeds:
        if feed.expected_within:
            facts += _overdue(
                context,
                f"overdue feed {feed.name}",
                f"feed {feed.name}: the next delivery is overdue",
                feed.table,
                _written_at(catalog, feed.table),
                feed.expected_within,
                f"lakehouse ingest {feed.name}",
            )
    for table in context.declared.values():
        if table.freshness:
            facts += _overdue(
                context,
                f"overdue {table.name}",
                f"{table.name} is overdue",
                table.name,
                _fresh_at(context, catalog, table.name),
                table.freshness,
                f"lakehouse retry {table.name}",
            )
    return Observed(tuple(facts), frozenset({"overdue"}))


def _overdue(
    context: MonitorContext,
    key: str,
    title: str,
    table: str,
    written: datetime | None,
    allowed: timedelta,
    command: str,
) -> Iterator[Firing]:
    if written is None or context.now - written <= allowed:
        return
    age = _describe_span(context.now - written)
    yield context.firing(
        key,
        "overdue",
        # The moment when it became overdue is the same in each round.
        written + allowed,
        title,
        lines=[
            f"{table} was last written at {moment_text(written)}, {age} ago;"
            f" {_describe_span(allowed)} are allowed."
        ],
        commands=[command, f"lakehouse history {table}"],
        table=table,
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
