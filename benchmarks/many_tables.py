"""A generated project with any number of tables and feeds, and a home in which they are current.

Each feed has nine downstream tables: three merged from the deliveries, and two computed from each of
these. PyIceberg creates and fills tables without a JVM; Dagster gets the events of runs.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import dagster as dg
import pyarrow as pa

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import create_table
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import history_of
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.project import Project, load_project
from lakehouse.scaffolding.begin_project import begin_project
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable

TABLES_OF_FEED = 10
_MERGED, _COMPUTED = 3, 2
_BRONZE = '''\
"""`bronze.{feed}`: orders as they were delivered."""

from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table

FEED = Feed(
    name="{feed}",
    table="bronze.{feed}",
    columns=[
        FeedColumn("id", "Identifier of the order."),
        FeedColumn("amount", "What it was about."),
        FeedColumn("placed_at", "When it was placed."),
    ],
)
TABLE = bronze_table(FEED, "Orders as they were delivered.")


@feed_asset(FEED, TABLE)
def {feed}(delivered):
    """Orders as they were delivered."""
    return delivered
'''
_SILVER = '''\
"""`silver.{name}`: one row for each order."""

from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Merge

from {package}.assets.bronze.{feed} import TABLE as RAW

TABLE = IcebergTable(
    name="silver.{name}",
    comment="One row for each order.",
    rows_of=RAW,
    columns=[
        Column("id", "bigint", "Identifier of the order."),
        Column("amount", "decimal(12,2)", "What it was about."),
        Column("placed_at", "timestamp", "When it was placed."),
    ],
    write=Merge(on=["id"]),
    rules=[not_null("id"), unique("id")],
)


@iceberg_asset(TABLE, inputs={{"raw": versions_of(RAW)}})
def {name}(raw):
    """One row for each order, as last delivered."""
    return raw
'''
_GOLD = '''\
"""`gold.{name}`: orders by day."""

from lakehouse.iceberg.rules.rows import not_null
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Overwrite

from {package}.assets.silver.{source} import TABLE as ORDERS

TABLE = IcebergTable(
    name="gold.{name}",
    comment="Orders by day.",
    columns=[
        Column("day", "date", "The day that they were placed on."),
        Column("orders", "bigint", "How many."),
        Column("amount", "decimal(22,2)", "What they were about."),
    ],
    write=Overwrite(),
    rules=[not_null("day", on_failure="block")],
)


@iceberg_asset(TABLE, inputs={{"orders": ORDERS}})
def {name}(orders):
    """Orders by day."""
    return orders.groupBy("day").count()
'''


def make_project(root: Path, feeds: int) -> None:
    """Write a project with feeds and downstream tables, based on `lakehouse init`.

    The package has the name of the folder.
    """
    begin_project(root, root.name, "0.1.0")
    for path, text in _asset_files(root.name, feeds):
        (root / root.name / "assets" / path).write_text(text, encoding="utf-8")


def _asset_files(package: str, feeds: int) -> Iterator[tuple[str, str]]:
    for number in range(feeds):
        feed = f"orders_{number:03}"
        yield f"bronze/{feed}.py", _BRONZE.format(feed=feed)
        for merged in range(_MERGED):
            silver = f"{feed}_{merged}"
            text = _SILVER.format(package=package, feed=feed, name=silver)
            yield f"silver/{silver}.py", text
            for computed in range(_COMPUTED):
                gold = f"{silver}_{computed}"
                text = _GOLD.format(package=package, source=silver, name=gold)
                yield f"gold/{gold}.py", text


def fill_home(
    project: Project,
    settings: Settings,
    undeclared: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Create the tables of a project with rows, and report passed runs to Dagster; none is stale.

    :param undeclared: snapshot ids of undeclared input tables.
    """
    engine = open_engine(settings)
    for feed in project.feeds.values():
        (settings.home / feed.inbox).mkdir(parents=True)
    snapshots = dict(undeclared)
    graph = project.graph
    with open_instance(settings) as instance:
        for key in graph.toposorted_asset_keys:
            name = table_name(key)
            table = project.tables.get(name)
            if table is None or table.namespace in ("audit", "monitoring"):
                continue
            node = graph.get(key)
            read = [table_name(parent) for parent in node.parent_keys]
            inputs = {source: snapshots[source] for source in read}
            snapshots[name] = _fill(engine, table, inputs, node.code_version or "")
            if node.is_executable:
                _report_run(instance, key, sorted(node.check_keys))


def _fill(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, int], code_version: str
) -> int:
    create_table(engine, table)
    loaded = engine.catalog.load(table.name)
    properties = CommitProperties(
        "write",
        uuid4().hex,
        inputs=inputs,
        declaration=table.declaration_hash,
        code_version=code_version,
    )
    schema = loaded.schema().as_arrow()
    is_quarantine = table.name.endswith("_quarantine")
    rows = [] if is_quarantine else [{field.name: _value(field.type) for field in schema}]
    loaded.append(
        pa.Table.from_pylist(rows, schema), snapshot_properties=properties.to_summary()
    )
    main = history_of(table.name, loaded).main
    assert main is not None
    return main.snapshot_id


def _value(kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind):
        return datetime.now(UTC)
    if pa.types.is_date(kind):
        return datetime.now(UTC).date()
    return "1" if pa.types.is_large_string(kind) or pa.types.is_string(kind) else 1


def _report_run(
    instance: dg.DagsterInstance, key: dg.AssetKey, checks: list[dg.AssetCheckKey]
) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(key))
    for check in checks:
        evaluation = dg.AssetCheckEvaluation(key, check.name, passed=True)
        instance.report_runless_asset_event(evaluation)


def open_project(root: Path) -> tuple[Project, Settings]:
    """Return a project of `make_project`, with the settings of its home."""
    settings = Settings.from_env({}, folder=root)
    return load_project(settings), settings
