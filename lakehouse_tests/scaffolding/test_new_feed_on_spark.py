"""New feeds on Spark: the files land, and all sums are correct."""

import importlib.util
import json
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration.deployment import open_engine
from lakehouse.project import Project
from lakehouse.testing.table_fixture import TryTable
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put
from lakehouse_tests.scaffolding.packages import begin_feed, empty_project, imported

ZONE = "Europe/London"


@pytest.fixture
def land(spark, settings):
    def ingested(project: Project, feed: str, path):
        result = ingest(
            project.definitions, project.tables, settings, project.feeds[feed], path=str(path)
        )
        assert result.success, result.messages
        return result, open_engine(settings)

    return ingested


SALES = [
    {
        "sale_id": f"{day}-{number}",
        "sold_at": f"2026-03-0{day}T0{number}:30:00Z",
        "amount": number + 0.25,
        "customer": {"city": "Bern", "tags": ["a", "b"][:number]},
    }
    for day in (1, 2)
    for number in range(5)
]


@pytest.mark.scenario
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_files_with_types_become_typed_tables(
    tmp_path, monkeypatch, land, embedded_engine, kind
):
    monkeypatch.syspath_prepend(tmp_path)
    project = empty_project(tmp_path, f"typed_{kind}")
    paths = [tmp_path / "files" / f"sales_{day}.{kind}" for day in (1, 2)]
    paths[0].parent.mkdir()
    for at, path in enumerate(paths):
        rows = SALES[5 * at :][:5]
        if kind == "jsonl":
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        else:
            sold_at = [datetime.fromisoformat(row["sold_at"]) for row in rows]
            typed = pa.Table.from_pylist(rows).set_column(1, "sold_at", [sold_at])
            parquet.write_table(typed, path)
    begin_feed(project, "sales", *paths)
    _, engine = land(Project(f"typed_{kind}.assets"), "sales", tmp_path / "files")

    found = engine.sql("SELECT * FROM silver.sales ORDER BY sale_id").collect()
    assert [
        {
            "sale_id": row.sale_id,
            "sold_at": f"{row.sold_at:%Y-%m-%dT%H:%M:%SZ}",
            "amount": float(row.amount),
            "customer": row.customer.asDict(),
        }
        for row in found
    ] == SALES


@pytest.mark.long
def test_other_kinds_land(tmp_path, monkeypatch, land, embedded_engine):
    monkeypatch.syspath_prepend(tmp_path)
    project = empty_project(tmp_path, "kinds_of_files")
    chosen = ("commas", "ambiguous", "codes", "weather", "semicolons")
    paths = {name: put(tmp_path, f"{name}.csv", kinds.READABLE[name]) for name in chosen}
    for name, path in paths.items():
        begin_feed(project, name, path)
    declared = Project("kinds_of_files.assets")
    for name, path in paths.items():
        result, engine = land(declared, name, path)
        assert not result.quarantined

    def one(query: str) -> list[object]:
        return list(engine.sql(query).collect()[0])

    assert one("SELECT sum(preis), sum(gewicht) FROM silver.commas") == [
        sum(Decimal(f"{n}.{n % 10}5") for n in range(100, 130)),
        sum(Decimal(f"1{n:03}.5") for n in range(100, 130)),
    ]
    assert one("SELECT count(*), min(due) FROM silver.ambiguous") == [40, "01/01/2025"]
    assert one("SELECT count(*), sum(precipitation), max(date) FROM silver.weather") == [
        200,
        5 * sum(Decimal(f"{n}.5") for n in range(40)),
        date(2026, 2, 20),
    ]
    assert one("SELECT count(*), sum(Betrag), max(Datum) FROM silver.semicolons") == [
        40,
        sum(Decimal(f"{n}.{n % 10}0") for n in range(40)),
        date(2026, 3, 28),
    ]
    assert one("SELECT min(postcode), cast(min(open_date) AS string) FROM silver.codes") == [
        "01200",
        "2026-03-01",
    ]
    _run_generated_test(project, "semicolons", embedded_engine)


def _run_generated_test(project, name, engine):
    path = project.tests / f"test_{name}.py"
    spec = importlib.util.spec_from_file_location(f"generated_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try_table = TryTable(engine, {}, lambda: Project(project.package))
    getattr(module, f"test_sample_of_{name}_is_typed")(try_table)


@pytest.mark.long
def test_a_renamed_key_is_merged(tmp_path, monkeypatch, land):
    monkeypatch.syspath_prepend(tmp_path)
    project = empty_project(tmp_path, "renamed_keys")
    header = "Order No,Ordered At,Amount\n"
    lines = (
        f"{number},2026-03-{1 + number // 40:02} 10:00:00,{number}.50" for number in range(400)
    )
    path = put(tmp_path / "files", "1.csv", header + "\n".join(lines) + "\n")
    begin_feed(project, "orders", path, time_zone=ZONE)
    land(Project("renamed_keys.assets"), "orders", tmp_path / "files")
    put(tmp_path / "more", "2.csv", f"{header}3,2026-03-01 10:00:00,9.75\n")
    _, engine = land(Project("renamed_keys.assets"), "orders", tmp_path / "more")
    rows = engine.sql("SELECT amount FROM silver.orders WHERE order_no = 3").collect()
    assert [row[0] for row in rows] == [Decimal("9.75")]
    assert imported(project, "silver.orders").TABLE.overwritten_by
