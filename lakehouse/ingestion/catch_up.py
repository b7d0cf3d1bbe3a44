"""What an ingest of a feed owes, and the run that does it: whatever waits in the inbox, and whatever lags behind it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import dagster as dg

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.owed import is_behind
from lakehouse.ingestion.feed import Feed
from lakehouse.ingestion.take import Waiting, waiting
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
    """What an ingest did. `run` is None where nothing was owed, and then no Spark was started.

    `rows` are those that bronze got, before any cleaning; `quarantined` counts refused rows by the table that refused.
    """

    feed: str
    run: RunResult | None = None
    files: tuple[str, ...] = ()
    rows: int = 0
    rejected: tuple[RejectedReason, ...] = ()
    quarantined: Mapping[str, int] = field(default_factory=dict)
    unsettled: tuple[str, ...] = ()
    """Files that are still being written; the next ingest takes them."""

    @property
    def success(self) -> bool:
        """Whether the run succeeded, and each file was what the feed declares."""
        return (self.run is None or self.run.success) and not self.rejected


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
    found = waiting(feed, open_store(settings))
    owed = owed_tables(here, open_engine(settings), feed, found)
    if not owed:
        return IngestResult(feed.name, unsettled=found.unsettled)
    with open_instance(settings) as instance:
        selection = dg.AssetSelection.assets(*map(asset_key, owed))
        run = materialize(here, instance, selection, tags={"lakehouse/feed": feed.name}, on_event=on_event)
    return read_ingest(feed, run, found)


def owed_tables(definitions: dg.Definitions, engine: Engine, feed: Feed, found: Waiting) -> list[str]:
    """Return the tables that an ingest must compute, in order: by what waits and by what the tables hold, not by events.

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


def read_ingest(feed: Feed, run: RunResult, found: Waiting) -> IngestResult:
    """Return what a run says that it did for a feed."""
    bronze = run.asset(feed.table)
    shown = bronze.metadata if bronze else {}
    refused = {asset.table: asset.metadata.get("quarantined_rows", 0) for asset in run.assets}
    return IngestResult(
        feed.name,
        run,
        files=tuple(row["file"] for row in shown.get("landed", ())),
        rows=shown.get("nr_rows", 0),
        rejected=tuple(RejectedReason(**row) for row in shown.get("rejected", ())),
        quarantined={table: rows for table, rows in refused.items() if rows},
        unsettled=tuple(shown.get("unsettled", found.unsettled)),
    )
