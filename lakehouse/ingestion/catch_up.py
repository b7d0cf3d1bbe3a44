"""What an ingest of a feed owes, and the run that does it: whatever waits in the inbox, and whatever lags behind it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.owed import is_behind
from lakehouse.ingestion.feed import Feed
from lakehouse.ingestion.take import Waiting, waiting
from lakehouse.resources.dead_runs import fail_dead_runs
from lakehouse.resources.engine import open_engine
from lakehouse.resources.instance import open_instance
from lakehouse.resources.keys import asset_key, table_name
from lakehouse.resources.run_result import RunResult
from lakehouse.resources.runs import OnEvent, materialize
from lakehouse.resources.stores import open_store
from lakehouse.settings import Settings


@dataclass(frozen=True)
class RejectedReason:
    """A delivered file that was refused as a whole, why, and where it now is."""

    file: str
    reason: str
    kept_as: str


@dataclass(frozen=True)
class IngestResult:
    """What an ingest did; `run` is None where nothing was owed, and then no Spark was started.

    `unsettled` are the files that are still being written; the next ingest takes them.
    """

    feed: Feed
    run: RunResult | None = None
    unsettled: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether the run succeeded, and each file was what the feed declares."""
        return (self.run is None or self.run.success) and not self.rejected

    @property
    def files(self) -> tuple[str, ...]:
        """The files that bronze has now."""
        return tuple(row["file"] for row in self._shown.get("landed", ()))

    @property
    def rows(self) -> int:
        """The rows that bronze got, before any cleaning."""
        return self._shown.get("nr_rows", 0)

    @property
    def rejected(self) -> tuple[RejectedReason, ...]:
        """The files that were refused as a whole."""
        return tuple(RejectedReason(**row) for row in self._shown.get("rejected", ()))

    @property
    def quarantined(self) -> dict[str, int]:
        """How many rows each table refused; those that refused none are left out."""
        assets = self.run.assets if self.run else ()
        found = {asset.table: asset.metadata.get("quarantined_rows", 0) for asset in assets}
        return {table: rows for table, rows in found.items() if rows}

    @property
    def _shown(self) -> Mapping[str, Any]:
        bronze = self.run.asset(self.feed.table) if self.run else None
        return bronze.metadata if bronze else {}


def ingest(
    definitions: Callable[[Callable[[], Settings]], dg.Definitions],
    settings: Settings,
    feed: Feed,
    *,
    on_event: OnEvent | None = None,
) -> IngestResult:
    """Land what waits in a feed's inbox, and bring every table downstream of it up to date, in one run.

    :param definitions: makes the project's definitions, given what reads the settings.
    """
    here = definitions(lambda: settings)
    with open_instance(settings) as instance:
        fail_dead_runs(instance)
        found = waiting(feed, open_store(settings))
        owed = owed_tables(here, open_engine(settings), feed, found)
        if not owed:
            return IngestResult(feed, unsettled=found.unsettled)
        selection = dg.AssetSelection.assets(*map(asset_key, owed))
        run = materialize(here, instance, selection, tags={"lakehouse/feed": feed.name}, on_event=on_event)
    return IngestResult(feed, run, found.unsettled)


def owed_tables(definitions: dg.Definitions, engine: Engine, feed: Feed, found: Waiting) -> list[str]:
    """Return the tables that an ingest must compute, in order: told by what waits and what the tables hold.

    A table that reads of one that is computed is computed too.
    """
    graph = definitions.resolve_asset_graph()
    reached = dg.AssetSelection.assets(asset_key(feed.table)).downstream().resolve(graph)
    owed: list[str] = []
    for key in graph.toposorted_asset_keys:
        if key in reached and graph.get(key).is_executable:
            sources = [table_name(parent) for parent in graph.get(key).parent_keys]
            table = table_name(key)
            has_files = table == feed.table and bool(found.files)
            if has_files or set(sources) & set(owed) or is_behind(engine, table, sources):
                owed.append(table)
    return owed
