"""What detectors read: Dagster's instance and assets, tables and feeds, settings and state."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import dagster as dg

from lakehouse.alerts.alert_state import AlertState
from lakehouse.alerts.incidents import Firing, Kind
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.dagster_internals import selected_assets
from lakehouse.orchestration.incident_reports import Severity
from lakehouse.orchestration.partitions.partition_bounds import computed_of, range_of
from lakehouse.orchestration.runs.run_progress import tables_of_steps
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shell_word
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

_UI_URL = "http://127.0.0.1:3000"
_LONGEST_VALUE = 60


@dataclass(frozen=True)
class MonitorContext:
    """The inputs of one round, and the parts of messages that all detectors use."""

    instance: dg.DagsterInstance
    graph: "AssetGraph"
    declared: Mapping[str, IcebergTable]
    feeds: Sequence[Feed]
    settings: Settings
    now: datetime
    automations: Collection[str] = ()
    """Names of the declared sensors and schedules; Dagster also remembers removed ones."""
    state: AlertState = field(default_factory=AlertState)
    open_catalog: Callable[[], Catalog] | None = None
    """Opens a catalog that several rounds share."""
    _ownership: dict[str, list[str]] = field(default_factory=dict, init=False)

    @cached_property
    def tables_of_steps(self) -> Mapping[str, str]:
        """The tables by the keys of the steps that compute them."""
        return tables_of_steps(self.graph)

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog.

        :raises CatalogDamaged: if it cannot be opened.
        """
        return self.open_catalog() if self.open_catalog else Catalog.of(self.settings)

    @property
    def ui_url(self) -> str:
        """The address of Dagster's UI."""
        return self.settings.ui_url or _UI_URL

    def owner(self, table: str) -> str:
        """Return the owner of a table, or an empty string."""
        declared = self.declared.get(table)
        return (declared.owner if declared else None) or ""

    def masked_columns(self, table: str) -> frozenset[str]:
        """Return the columns whose values are masked."""
        declared = self.declared.get(table)
        return declared.masked_columns if declared else frozenset()

    def feeds_of(self, table: str) -> list[Feed]:
        """Return the feeds from which a table is computed."""
        if not self.graph.has(asset_key(table)):
            return []
        upstream = selected_assets(
            dg.AssetSelection.assets(asset_key(table)).upstream(), self.graph
        )
        return [feed for feed in self.feeds if asset_key(feed.table) in upstream]

    def reject_commands(self, table: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Yield the commands that reject the source files of rows, one for each possible feed."""
        files = {
            (str(row["_source_file"]), str(row.get("_source_sha256") or ""))
            for row in rows
            if row.get("_source_file")
        }
        feeds = self.feeds_of(table) if files else ()
        for file, sha256 in sorted(files):
            # Several deliveries can have the same name.
            which = f" --sha256 {sha256[:12]}" if sha256 else ""
            for feed in feeds:
                yield f"lakehouse reject {shell_word(file)} --feed {feed.name}{which} --why …"

    def describe_ownership(self, table: str) -> list[str]:
        """Describe the tables downstream of a table, and its owner."""
        if table not in self._ownership:
            self._ownership[table] = list(self._describe_ownership(table))
        return self._ownership[table]

    def _describe_ownership(self, table: str) -> Iterator[str]:
        downstream: list[str] = []
        if self.graph.has(asset_key(table)):
            selection = dg.AssetSelection.assets(asset_key(table))
            reached = selected_assets(selection.downstream(include_self=False), self.graph)
            keys = self.graph.toposorted_asset_keys
            downstream = [table_name(key) for key in keys if key in reached]
        yield f"Downstream: {', '.join(downstream) or 'nothing'}"
        if owner := self.owner(table):
            yield f"Owner: {owner}"

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
        """Return a failure with the owner, downstream tables and links of its table and run.

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

    def links(self, *, run_id: str = "", table: str = "") -> tuple[str, ...]:
        """Return the pages of a run and a table in the UI."""
        links = []
        if run_id:
            links.append(f"Run: {self.ui_url}/runs/{run_id}")
        if table:
            asset = "/".join(map(quote, table.split(".")))
            links.append(f"Table: {self.ui_url}/assets/{asset}")
        return tuple(links)

    def partitions_of_run(self, table: str, run: dg.DagsterRun) -> frozenset[str]:
        """Return the partitions of a table that a run computes; empty without partitions."""
        node = self.graph.get(asset_key(table)) if self.graph.has(asset_key(table)) else None
        bounds = range_of(run.tags)
        if node is None or node.partitions_def is None or bounds is None:
            return frozenset()
        first, last = bounds
        keys: list[Any] = list(node.partitions_def.get_partition_keys())
        if first not in keys or last not in keys:
            return frozenset({first, last})
        return frozenset(computed_of(run.tags, keys[keys.index(first) : keys.index(last) + 1]))


def describe_rows(
    rows: Iterable[Mapping[str, Any]], personal: frozenset[str], most: int = 3
) -> list[str]:
    """Describe distinct rows; personal values that are not masked are left out."""
    distinct: dict[Any, Mapping[str, Any]] = {}
    for row in rows:
        source = tuple(row.get(name) for name in SOURCE_COLUMNS)
        identity = source if all(source) else tuple(map(str, row.items()))
        distinct.setdefault(identity, row)
    return [f"Row: {_row(row, personal)}" for row in list(distinct.values())[:most]]


def _row(row: Mapping[str, Any], personal: frozenset[str]) -> str:
    cells = []
    for name, value in row.items():
        text = "NULL" if value is None else " ".join(str(value).split())
        if name in personal and value is not None and not str(value).startswith("masked:"):
            text = "masked"
        if len(text) > _LONGEST_VALUE:
            text = f"{text[: _LONGEST_VALUE - 3]}…"
        cells.append(f"{name}={text}")
    return ", ".join(cells)
