"""A small lakehouse without a JVM: tables, one of them with a quarantined row, results of checks,
and open incidents.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from lakehouse.alerts.alert_state import AlertState, write_state
from lakehouse.alerts.incidents import Firing, Incident
from lakehouse.definitions import TABLES as OWN
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.rows import accepted, not_null
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.asset_specs import quarantine_spec, table_spec
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.project import MONITORING
from lakehouse.settings import Settings
from lakehouse.site.facts import SiteFacts, TableFacts
from lakehouse.site.read_site import SiteSource, read_site
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.table import Column, IcebergTable, Merge
from lakehouse_tests.conftest import settings_at

ADA = "ada.lovelace@example.org"
"""A value of a person, which no page may show."""
HOSTILE = '<script>alert(1)</script> & "quotes" \u202e\x07'
"""A hostile comment."""

FEED = Feed(
    name="orders",
    table="bronze.raw_orders",
    columns=[FeedColumn("order_id"), FeedColumn("email", "Whose it is.", personal=True)],
    no_subject="Orders of a shop without accounts.",
    expected_within=timedelta(days=2),
)
RAW = bronze_table(FEED, "Orders as they were delivered.")
ORDERS = IcebergTable(
    name="silver.orders",
    comment=HOSTILE,
    columns=[
        Column("order_id", "bigint", "Which order it is."),
        Column("email", "string", "Who ordered.", personal=True),
        Column("state", "string", f"How far it is. {HOSTILE}"),
    ],
    write=Merge(on="order_id"),
    rules=[not_null("order_id"), accepted("state", ["OPEN", "PAID"])],
    no_subject="Orders of a shop without accounts.",
    freshness=timedelta(days=1),
    owner="shop@example.org",
    tags={"domain": "sales"},
)
DECLARED = {
    table.name: table
    for table in (
        RAW,
        ORDERS,
        ORDERS.quarantine,
        *(OWN[name] for name in vars(MONITORING).values()),
    )
    if table is not None
}


@iceberg_asset(ORDERS, inputs={"raw": incremental(RAW)})
def orders(raw: Any) -> Any:
    """Orders, each once."""
    return raw


DEFINITIONS = dg.Definitions(
    assets=[table_spec(RAW), orders, quarantine_spec(ORDERS)]  # type: ignore[list-item]
)


@pytest.fixture(scope="session")
def source() -> SiteSource:
    """The project of the site."""
    return SiteSource(DECLARED, {FEED.name: FEED}, lambda: asset_graph(DEFINITIONS))


@pytest.fixture(scope="session")
def now() -> datetime:
    """A timestamp after all writes."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=30)


@pytest.fixture
def lake(settings: Settings, now: datetime) -> Settings:
    """A lakehouse of the test's own, filled."""
    return fill(settings, now)


def fill(settings: Settings, now: datetime) -> Settings:
    """Fill a lakehouse without a JVM."""
    engine = open_engine(settings)
    for table in (RAW, ORDERS, ORDERS.quarantine):
        assert table is not None
        ensure(engine, table)
    _append(engine.catalog, ORDERS.name, {"order_id": 1, "email": ADA, "state": "OPEN"})
    _append(engine.catalog, ORDERS.name, {"order_id": 2, "email": ADA, "state": "PAID"})
    refused = {
        "order_id": "x",
        "email": ADA,
        "state": "LOST",
        "_row_key": "k",
        "_reasons": ["accepted_state"],
        "_source_file": f"{ADA}.csv",
        "_quarantined_at": now - timedelta(hours=1),
    }
    _append(engine.catalog, "silver.orders_quarantine", refused)
    with open_instance(settings) as instance:
        for evaluation in _evaluations():
            instance.report_runless_asset_event(evaluation)
    write_state(settings, AlertState(open=_incidents(now)))
    return settings


def _append(catalog: Catalog, name: str, row: dict[str, Any]) -> None:
    table = catalog.load(name)
    schema = table.schema().as_arrow()
    table.append(pa.Table.from_pylist([row], schema))


def _evaluations() -> list[dg.AssetCheckEvaluation]:
    sample = ({"order_id": "x", "email": ADA},)
    failed = CheckMetadata(failed_rows=2, total_rows=8, sample=sample)
    return [
        dg.AssetCheckEvaluation(
            asset_key(ORDERS.name),
            "accepted_state",
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            description=f"{ADA} breaks it",
            metadata=failed.to_metadata(),
        ),
        dg.AssetCheckEvaluation(
            asset_key(ORDERS.name),
            "not_null_order_id",
            passed=True,
            metadata=CheckMetadata(failed_rows=0, total_rows=8).to_metadata(),
        ),
    ]


def _incidents(now: datetime) -> dict[str, Incident]:
    at = now - timedelta(hours=2)
    rejected = f"feed orders: file {ADA}.csv was rejected"
    firings = (
        Firing(
            "a", "check", at, "error", f"a check failed {HOSTILE}", (ADA,), table=ORDERS.name
        ),
        Firing("b", "rejected", at, "error", rejected, table=RAW.name),
        Firing("c", "erasure", at, "error", "request 17 is late"),
        Firing("d", "monitor", at, "warn", "monitoring failed"),
    )
    return {firing.key: Incident.of(firing) for firing in firings}


@pytest.fixture(scope="session")
def facts(
    tmp_path_factory: pytest.TempPathFactory, source: SiteSource, now: datetime
) -> SiteFacts:
    """The content of a site that all tests share."""
    settings = settings_at(tmp_path_factory.mktemp("lake") / "home")
    return read(fill(settings, now), source, now)


def read(settings: Settings, source: SiteSource, now: datetime) -> SiteFacts:
    """Read the content of the site, as `lakehouse docs` does."""
    with open_instance(settings) as instance:
        return read_site(source, settings, Catalog.of(settings), instance, now)


def table_of(facts: SiteFacts, name: str) -> TableFacts:
    """Return the content of a table's page."""
    return facts.tables[name]
