"""`lakehouse retry` of a table by days, one of whose inputs does not tell them; no JVM."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.cli.outcomes import records
from lakehouse_tests.cli.projects import project_at

pytestmark = pytest.mark.unit

ORDERS = IcebergTable(
    "bronze.orders",
    "As they came.",
    [Column("day", "date"), Column("shop", "string")],
    partitioning=["day"],
    write=Append(once_by=()),
)
SHOPS = IcebergTable(
    "bronze.shops",
    "As they are.",
    [Column("shop", "string"), Column("city", "string")],
    write=Append(once_by=()),
)
FILE = '''\
"""`silver.orders`."""

import dagster as dg

from lakehouse.iceberg.read.inputs import latest
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, by_day

TABLE = IcebergTable(
    "silver.orders",
    "Orders with their cities.",
    [Column("day", "date", "Day."), Column("city", "string", "City.")],
    write=by_day("day", since="2026-01-01"),
)
ORDERS, SHOPS = dg.AssetSpec(["bronze", "orders"]), dg.AssetSpec(["bronze", "shops"])


@iceberg_asset(
    TABLE, inputs={"orders": latest("bronze.orders", by="day"), "shops": latest("bronze.shops")}
)
def orders(orders, shops):
    """Orders with their cities."""
    return orders.join(shops, "shop").select("day", "city")
'''
DAY = date(2026, 1, 2)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home that the project finds by itself."""
    return tmp_path / "shop" / ".lakehouse"


@pytest.fixture
def engine(
    tmp_path: Path, home: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """A project whose one day is computed from an order and a shop."""
    with project_at(tmp_path / "shop", monkeypatch) as root:
        (root / "shop" / "assets" / "silver" / "orders.py").write_text(FILE)
        engine = open_engine(settings)
        for table in (ORDERS, SHOPS):
            ensure(engine, table)
        come(engine, ORDERS.name, {"day": DAY, "shop": "A"})
        come(engine, SHOPS.name, {"shop": "A", "city": "Ipoh"})
        yield engine


def come(engine: Engine, name: str, row: dict[str, Any], **properties: str) -> int:
    """Append a row, and return the snapshot of that."""
    table = engine.catalog.load(name)
    schema = table.schema().as_arrow()
    table.append(pa.Table.from_pylist([row], schema), properties)
    main = read_history(engine, name).main
    assert main is not None
    return main.snapshot_id


def compute(engine: Engine) -> None:
    """Commit the day as computed from what both inputs hold."""
    mains = {
        table.name: read_history(engine, table.name).refs["main"] for table in (ORDERS, SHOPS)
    }
    properties = CommitProperties(
        "write",
        "w",
        partitions=(str(DAY),),
        merged_ranges=(("2026-01-02", "2026-01-03"),),
        inputs=mains,
        read=mains,
    )
    table = IcebergTable(
        "silver.orders",
        "Orders with their cities.",
        [Column("day", "date"), Column("city", "string")],
        partitioning=["day"],
        write=Append(once_by=()),
    )
    ensure(engine, table)
    come(engine, table.name, {"day": DAY, "city": "Ipoh"}, **properties.to_summary())


@pytest.mark.long
def test_a_change_of_what_tells_no_partition_is_said_and_not_called_up_to_date(
    engine: Engine, lakehouse: Any
) -> None:
    def is_stale() -> bool:
        said = records(lakehouse("status", "--format", "json"))
        (silver,) = (record for record in said if record["table"] == "silver.orders")
        return bool(silver["stale"])

    compute(engine)
    rest = (
        "What changes in bronze.shops, read without by=, makes none stale: partitions have what"
        " it held when they were computed. `lakehouse backfill silver.orders --from KEY --to KEY`"
        " computes them from what it now holds."
    )
    ran = lakehouse("retry", "silver.orders")
    assert (ran.code, ran.out, ran.err) == (
        0,
        [f"silver.orders has no stale partition. {rest}"],
        [],
    )
    assert not is_stale()

    come(engine, SHOPS.name, {"shop": "A", "city": "Melaka"})
    ran = lakehouse("retry", "silver.orders")
    changed = "bronze.shops changed since its last run."
    assert (ran.code, ran.out) == (
        0,
        [f"silver.orders has no stale partition. {changed} {rest}"],
    )
    assert is_stale()
