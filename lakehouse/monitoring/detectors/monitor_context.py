"""What the detectors ask: Dagster's instance and assets, the declared tables and feeds, and the
settings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import dagster as dg

from lakehouse.iceberg.write.prepared_frame import SOURCE_COLUMNS
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.partitions import range_of
from lakehouse.settings import Settings
from lakehouse.tables.escaping import shell_word
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

_UI_URL = "http://127.0.0.1:3000"


class WatchedFeed(Protocol):
    """What is monitored of a feed."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def table(self) -> str:
        """The bronze table that it lands in."""

    @property
    def inbox(self) -> str:
        """Where its files wait."""

    @property
    def rejected(self) -> str:
        """Where its refused files go."""

    @property
    def expected_within(self) -> timedelta | None:
        """How long after the last delivery the next one is overdue."""


@dataclass(frozen=True)
class MonitorContext:
    """One round, and what it needs to say where something is, whose it is and what follows from
    it.
    """

    instance: dg.DagsterInstance
    graph: "AssetGraph"
    declared: Mapping[str, IcebergTable]
    feeds: Sequence[WatchedFeed]
    settings: Settings
    now: datetime

    @cached_property
    def tables_of_steps(self) -> Mapping[str, str]:
        """The assets' tables by the keys of the steps that compute them."""
        keys = self.graph.executable_asset_keys
        return {self.graph.get(key).assets_def.node_def.name: table_name(key) for key in keys}

    @property
    def ui_url(self) -> str:
        """Where people open Dagster's UI."""
        return self.settings.ui_url or _UI_URL

    def owner(self, table: str) -> str:
        """Whose a table is; nothing where that is not declared."""
        declared = self.declared.get(table)
        return (declared.owner if declared else None) or ""

    def feed_of(self, table: str) -> WatchedFeed | None:
        """The feed that a table is computed from, first or last."""
        if not self.graph.has(asset_key(table)):
            return None
        reached = dg.AssetSelection.assets(asset_key(table)).upstream().resolve(self.graph)
        return next((feed for feed in self.feeds if asset_key(feed.table) in reached), None)

    def reject_commands(self, table: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Yield the commands that reject the delivered files that some rows came with."""
        feed = self.feed_of(table)
        if feed is None:
            return
        sources = set()
        for row in rows:
            if row.get("_source_file"):
                sources.add((str(row["_source_file"]), str(row.get("_source_sha256") or "")))
        for file, sha256 in sorted(sources):
            # Several deliveries may have had one name.
            which = f" --sha256 {sha256[:12]}" if sha256 else ""
            yield f"lakehouse reject {shell_word(file)} --feed {feed.name}{which} --why …"

    def downstream(self, table: str) -> list[str]:
        """The tables that are computed from one, nearest first."""
        if not self.graph.has(asset_key(table)):
            return []
        reached = (
            dg.AssetSelection.assets(asset_key(table))
            .downstream(include_self=False)
            .resolve(self.graph)
        )
        return [table_name(key) for key in self.graph.toposorted_asset_keys if key in reached]

    def describe_ownership(self, table: str) -> list[str]:
        """Say what lies downstream of a table, and who owns it."""
        owner = self.owner(table)
        lines = [f"Downstream: {', '.join(self.downstream(table)) or 'nothing'}"]
        return [*lines, f"Owner: {owner}"] if owner else lines

    def links(self, *, run_id: str = "", table: str = "") -> tuple[str, ...]:
        """Say where the UI shows a run and a table."""
        links = []
        if run_id:
            links.append(f"Run: {self.ui_url}/runs/{run_id}")
        if table:
            asset = "/".join(map(quote, table.split(".")))
            links.append(f"Table: {self.ui_url}/assets/{asset}")
        return tuple(links)

    def keys_of(self, table: str, run: dg.DagsterRun) -> frozenset[str]:
        """Return the partitions of a table that a run computed; none where the table or the run
        has none.
        """
        node = self.graph.get(asset_key(table)) if self.graph.has(asset_key(table)) else None
        bounds = range_of(run.tags)
        if node is None or node.partitions_def is None or bounds is None:
            return frozenset()
        first, last = bounds
        keys: list[Any] = list(node.partitions_def.get_partition_keys())
        if first not in keys or last not in keys:
            return frozenset({first, last})
        return frozenset(keys[keys.index(first) : keys.index(last) + 1])


def describe_rows(
    rows: Iterable[Mapping[str, Any]], personal: frozenset[str], most: int = 3
) -> list[str]:
    """Say what some rows look like, each once, though it breaks several rules or was refused by
    several runs.

    Personal values come masked, and one that does not is left out all the same.
    """
    distinct: dict[Any, Mapping[str, Any]] = {}
    for row in rows:
        distinct.setdefault(_source(row), row)
    return [f"Row: {_row(row, personal)}" for row in list(distinct.values())[:most]]


def _source(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where a row was delivered; the row itself where it does not say."""
    source = tuple(row.get(name) for name in SOURCE_COLUMNS)
    return source if all(source) else tuple(map(str, row.items()))


def _row(row: Mapping[str, Any], personal: frozenset[str]) -> str:
    shown = []
    for name, value in row.items():
        shown.append(f"{name}={_short(_masked(value) if name in personal else value)}")
    return ", ".join(shown)


def _masked(value: Any) -> Any:
    return value if value is None or str(value).startswith("masked:") else "masked"


def _short(value: Any) -> str:
    text = "NULL" if value is None else " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
