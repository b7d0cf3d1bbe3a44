"""What the detectors ask: Dagster's instance and assets, the declared tables and feeds, and the
settings.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import dagster as dg

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.incidents import Firing, Kind
from lakehouse.orchestration.alert import Severity
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.dagster_internals import selected_assets
from lakehouse.orchestration.partition_bounds import computed_of, range_of
from lakehouse.orchestration.run_progress import tables_of_steps
from lakehouse.settings import Settings
from lakehouse.tables.escaping import shell_word
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

_UI_URL = "http://127.0.0.1:3000"


@dataclass(frozen=True)
class MonitorContext:
    """One round, and what it needs to say where something is, whose it is and what follows from
    it.
    """

    instance: dg.DagsterInstance
    graph: "AssetGraph"
    declared: Mapping[str, IcebergTable]
    feeds: Sequence[Feed]
    settings: Settings
    now: datetime
    automations: Collection[str] = ()
    """Names of the sensors and schedules that there are; Dagster remembers also what is gone."""
    state: AlertState = field(default_factory=AlertState)
    """What is known from the round before."""
    open_catalog: Callable[[], Catalog] | None = None
    """What opens the catalog, where several rounds share one."""

    @cached_property
    def tables_of_steps(self) -> Mapping[str, str]:
        """The assets' tables by the keys of the steps that compute them."""
        return tables_of_steps(self.graph)

    @property
    def catalog(self) -> Catalog:
        """Where the tables are.

        :raises CatalogDamaged: when it cannot be opened.
        """
        return self.open_catalog() if self.open_catalog else Catalog.of(self.settings)

    @property
    def ui_url(self) -> str:
        """Where people open Dagster's UI."""
        return self.settings.ui_url or _UI_URL

    def owner(self, table: str) -> str:
        """Whose a table is; nothing where that is not declared."""
        declared = self.declared.get(table)
        return (declared.owner if declared else None) or ""

    def feed_of(self, table: str) -> Feed | None:
        """The feed that a table is computed from, first or last."""
        if not self.graph.has(asset_key(table)):
            return None
        reached = selected_assets(
            dg.AssetSelection.assets(asset_key(table)).upstream(), self.graph
        )
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
        after = dg.AssetSelection.assets(asset_key(table)).downstream(include_self=False)
        reached = selected_assets(after, self.graph)
        return [table_name(key) for key in self.graph.toposorted_asset_keys if key in reached]

    def describe_ownership(self, table: str) -> list[str]:
        """Say what lies downstream of a table, and who owns it."""
        owner = self.owner(table)
        lines = [f"Downstream: {', '.join(self.downstream(table)) or 'nothing'}"]
        return [*lines, f"Owner: {owner}"] if owner else lines

    def firing(
        self,
        key: str,
        kind: Kind,
        at: datetime,
        title: str,
        *,
        lines: Iterable[str],
        commands: Iterable[str],
        links: Iterable[str] = (),
        severity: Severity = "error",
        table: str = "",
        run_id: str = "",
        **details: Any,
    ) -> Firing:
        """Return that something fires, with whose the table is, what lies downstream of it, and
        where the UI shows table and run.

        :param details: further fields of `Firing`.
        """
        ownership = self.describe_ownership(table) if table else []
        return Firing(
            key,
            kind,
            at,
            severity,
            title,
            (*lines, *ownership),
            (*links, *self.links(run_id=run_id, table=table)),
            tuple(commands),
            table,
            self.owner(table),
            run_id,
            **details,
        )

    def masked_columns(self, table: str) -> frozenset[str]:
        """The columns of a table whose values are shown to nobody."""
        declared = self.declared.get(table)
        return declared.masked_columns if declared else frozenset()

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
        within = keys[keys.index(first) : keys.index(last) + 1]
        return frozenset(computed_of(run.tags, within))


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
