"""Tables that are older than declared, and feeds whose next delivery is overdue."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakehouse.alerts.incidents import Firing, Observed, moment_text
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.iceberg.metadata.snapshots import history_of
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.upkeep import duration_text


@dataclass(frozen=True)
class Freshness:
    """A freshness limit of a table, and when the table was last fresh."""

    allowed: timedelta
    reason: str
    fresh_at: datetime | None
    is_late: bool
    feed: str = ""

    @property
    def due_at(self) -> datetime | None:
        """When the table becomes too old, unless it is written before."""
        return self.fresh_at + self.allowed if self.fresh_at else None


def freshness_of(
    name: str,
    table: IcebergTable | None,
    feeds: Iterable[Feed],
    times: tuple[datetime | None, datetime | None],
    now: datetime,
) -> Iterator[Freshness]:
    """Yield the freshness of a table by its declaration and by its feeds.

    :param times: when it was last written, and when a run last found it up to date.
    """
    written, checked = times
    limits = []
    if table is not None and table.freshness:
        fresh_at = max(written, checked) if written and checked else written
        limits.append((table.freshness, "declared of the table", fresh_at, ""))
    for feed in feeds:
        if feed.table == name and feed.expected_within:
            reason = f"the next delivery of feed {feed.name}"
            limits.append((feed.expected_within, reason, written, feed.name))
    for allowed, reason, fresh_at, feed_name in limits:
        is_late = fresh_at is not None and now - fresh_at > allowed
        yield Freshness(allowed, reason, fresh_at, is_late, feed_name)


def detect_overdue(context: MonitorContext) -> Observed:
    """Return the overdue tables and feeds; a table that was never written is not overdue."""
    facts: list[Firing] = []
    for name in sorted({*context.declared, *(feed.table for feed in context.feeds)}):
        table = context.declared.get(name)
        has_limit = bool(table and table.freshness)
        if has_limit or any(f.table == name and f.expected_within for f in context.feeds):
            times = _times(context, name)
            for one in freshness_of(name, table, context.feeds, times, context.now):
                if one.is_late and one.fresh_at:
                    facts.append(_firing(context, name, one, one.fresh_at))
    return Observed(tuple(facts), frozenset({"overdue"}))


def _times(context: MonitorContext, name: str) -> tuple[datetime | None, datetime | None]:
    catalog = context.catalog
    if not catalog.has(name):
        return None, None
    event = context.instance.get_latest_materialization_event(asset_key(name))
    checked = datetime.fromtimestamp(event.timestamp, UTC) if event else None
    return history_of(name, catalog.load(name)).written_at, checked


def _firing(
    context: MonitorContext, table: str, freshness: Freshness, fresh_at: datetime
) -> Firing:
    feed, age = freshness.feed, duration_text(context.now - fresh_at)
    key, title = f"overdue {table}", f"{table} is overdue"
    # An ingest also computes what is stale.
    feeds = " ".join(source.name for source in context.feeds_of(table))
    command = f"lakehouse ingest {feeds}" if feeds else f"lakehouse retry {table}"
    if feed:
        key, command = f"overdue feed {feed}", f"lakehouse ingest {feed}"
        title = f"feed {feed}: the next delivery is overdue"
    return context.firing(
        key,
        "overdue",
        # The same timestamp in each round, so that it counts as one failure.
        fresh_at + freshness.allowed,
        title,
        lines=[
            f"{table} was last written at {moment_text(fresh_at)}, {age} ago; expected every"
            f" {duration_text(freshness.allowed)}."
        ],
        commands=[command, f"lakehouse history {table}"],
        table=table,
    )
