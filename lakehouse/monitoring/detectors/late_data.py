"""Tables that are older than their declaration allows, and feeds whose next delivery is
late.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import history_of
from lakehouse.monitoring.detectors.sources import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed, moment_text
from lakehouse.orchestration.asset_keys import asset_key


def look_for_late(context: MonitorContext) -> Observed:
    """Return what is late now; what was never written is not."""
    catalog = Catalog.of(context.settings)
    return Observed(
        (*_feeds(context, catalog), *_tables(context, catalog)), frozenset({"late"})
    )


def _feeds(context: MonitorContext, catalog: Catalog) -> Iterator[Firing]:
    for feed in context.feeds:
        written = _written_at(catalog, feed.table) if feed.expected_within else None
        if written and feed.expected_within and context.now - written > feed.expected_within:
            commands = (f"lakehouse ingest {feed.name}", f"lakehouse history {feed.table}")
            what = f"feed {feed.name}: the next delivery is late"
            yield _late(
                context,
                f"late feed {feed.name}",
                what,
                feed.table,
                written,
                feed.expected_within,
                commands,
            )


def _tables(context: MonitorContext, catalog: Catalog) -> Iterator[Firing]:
    for table in context.declared.values():
        written = _fresh_at(context, catalog, table.name) if table.freshness else None
        if written and table.freshness and context.now - written > table.freshness:
            what, commands = (
                f"{table.name} is late",
                (f"lakehouse retry {table.name}", f"lakehouse history {table.name}"),
            )
            yield _late(
                context,
                f"late {table.name}",
                what,
                table.name,
                written,
                table.freshness,
                commands,
            )


def _late(
    context: MonitorContext,
    key: str,
    what: str,
    table: str,
    written: datetime,
    allowed: timedelta,
    commands: tuple[str, ...],
) -> Firing:
    age = _hours(context.now - written)
    return Firing(
        key,
        "late",
        # The moment when it became late is the same in each look.
        written + allowed,
        "error",
        what,
        (
            (
                f"{table} was last written at {moment_text(written)}, {age} ago;"
                f" {_hours(allowed)} are allowed."
            ),
            *context.whose(table),
        ),
        context.links(table=table),
        commands,
        table,
        context.owner(table),
        brief=f"{age} old",
    )


def _fresh_at(context: MonitorContext, catalog: Catalog, table: str) -> datetime | None:
    """Return when a table was last written, or found by a run to be as it should."""
    written = _written_at(catalog, table)
    event = context.instance.get_latest_materialization_event(asset_key(table))
    found = datetime.fromtimestamp(event.timestamp, UTC) if event else None
    return max(found, written) if found and written else written


def _written_at(catalog: Catalog, table: str) -> datetime | None:
    return history_of(table, catalog.load(table)).written_at if catalog.has(table) else None


def _hours(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"
