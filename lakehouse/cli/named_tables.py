"""Table arguments of commands."""

from typing import TYPE_CHECKING

from lakehouse.cli.call_context import State

if TYPE_CHECKING:
    from lakehouse.tables.table import IcebergTable


def declared_tables(state: State, names: tuple[str, ...]) -> "list[IcebergTable]":
    """Return the named tables, or all; tables of feeds include automatically added columns."""
    from lakehouse.ingestion.staged_frame import plan_landing_table

    feeds = {feed.table: feed for feed in state.feeds.values()}
    tables = [state.declared_table(name) for name in names or sorted(state.declared)]
    return [
        (
            plan_landing_table(feeds[table.name], table, state.engine.catalog)[0]
            if table.name in feeds
            else table
        )
        for table in tables
    ]
