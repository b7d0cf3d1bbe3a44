"""Tables computed by the real job script, started in place of Glue, on moto."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import boto3
import dagster as dg
import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.iceberg.frames.pyspark_internals import has_context
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.orchestration.table_jobs import job_runs
from lakehouse.project import load_project
from lakehouse.settings import Settings, TableJob
from lakehouse_tests.cli.projects import forget
from lakehouse_tests.docs.markdown import ROOT, sections
from lakehouse_tests.orchestration.table_jobs.glue_stand_in import GlueStandIn
from lakehouse_tests.processes import wait_for

pytestmark = [
    pytest.mark.e2e,
    # Clients of dagster-aws use them.
    pytest.mark.filterwarnings(r"ignore:AssetExecutionContext\.\w+ is deprecated"),
]
on_glue = pytest.mark.skipif(
    not is_spark_3(), reason="AWS Glue runs Spark 3.5; `make test-glue` has it"
)
PACKAGE = "orders_shop"
FILES = {
    "__init__.py": "",
    "definitions.py": f"""
from lakehouse.project import Project

PROJECT = Project("{PACKAGE}.assets")
defs = PROJECT.defs
""",
    "assets/__init__.py": "",
    "assets/orders.py": """
import dagster as dg

from lakehouse.tables.table import Column, IcebergTable, Overwrite

ORDERS = IcebergTable(
    "bronze.orders",
    "Orders as they came.",
    [Column("day", "date"), Column("amount", "bigint")],
    partitioning=["day"],
    write=Overwrite(),
)
orders = dg.AssetSpec(["bronze", "orders"])
""",
    "assets/totals.py": f"""
import time

import dagster as dg
from pyspark.sql import DataFrame

import lakehouse
from {PACKAGE}.assets.orders import ORDERS
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import expression, not_null
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Overwrite, by_day

COLUMNS = [Column("day", "date"), Column("total", "bigint")]
TOTALS = IcebergTable(
    "gold.totals",
    "Orders of a day in one figure.",
    COLUMNS,
    write=by_day("day", since="2026-01-01"),
    rules=[
        not_null("day", on_failure="block"),
        expression("few", "total < 100", columns=["total"]),
        expression("round", "total % 10 = 0", columns=["total"], on_failure="warn"),
    ],
)
SLOW = IcebergTable("gold.slow", "As totals, in ten minutes.", COLUMNS, write=Overwrite())


@iceberg_asset(TOTALS, inputs={{"orders": latest(ORDERS, by="day")}})
def totals(orders: DataFrame) -> DataFrame:
    dg.get_dagster_logger().info("computed by %s", lakehouse.__file__)
    return orders.groupBy("day").agg({{"amount": "sum"}}).withColumnRenamed("sum(amount)", "total")


@iceberg_asset(SLOW, inputs={{"orders": ORDERS}})
def slow(orders: DataFrame) -> DataFrame:
    print("slow begins", flush=True)
    time.sleep(600)
    return orders.selectExpr("day", "amount AS total")
""",
}


@dataclass
class Shop:
    settings: Settings
    glue: GlueStandIn

    def run(self, table: str, **how: Any) -> RunResult:
        definitions = load_project(self.settings).definitions(lambda: self.settings)
        selection = dg.AssetSelection.assets(asset_key(table))
        with open_instance(self.settings) as instance:
            return materialize(definitions, instance, selection, **how)

    def set_script(self, text: str) -> None:
        self._s3.put_object(Bucket="lake", Key="jobs/other.py", Body=text.encode())
        client = boto3.client("glue", endpoint_url=self.settings.endpoint_url)
        job = client.get_job(JobName="lakehouse")["Job"]
        command = {**job["Command"], "ScriptLocation": "s3://lake/jobs/other.py"}
        client.delete_job(JobName="lakehouse")
        client.create_job(
            Name="lakehouse",
            Role="role",
            Command=command,
            DefaultArguments=job["DefaultArguments"],
        )

    @property
    def left(self) -> list[str]:
        listed = self._s3.list_objects_v2(Bucket="lake", Prefix="jobs/runs/")
        return [item["Key"] for item in listed.get("Contents", ())]

    def recorded_snapshots(self, table: str) -> list[int]:
        with open_instance(self.settings) as instance:
            records = instance.fetch_materializations(asset_key(table), limit=9).records
        materialized = [record.asset_materialization for record in records]
        return [int(str(of.metadata["iceberg/snapshot_id"].value)) for of in materialized if of]

    def logged(self) -> list[str]:
        with open_instance(self.settings) as instance:
            return [
                entry.user_message
                for run in instance.get_runs()
                for entry in instance.all_logs(run.run_id)
            ]

    @property
    def _s3(self) -> Any:
        return boto3.client("s3", endpoint_url=self.settings.endpoint_url)


@pytest.fixture
def shop(
    aws_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    root = tmp_path / "project"
    for name, text in FILES.items():
        file = root / PACKAGE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    settings = replace(
        aws_settings,
        definitions=f"{PACKAGE}.definitions",
        project_root=root,
        jobs=(TableJob("gold.*", "lakehouse"),),
    )
    glue = GlueStandIn(settings, tmp_path)
    monkeypatch.setattr(job_runs, "glue_client", lambda _: glue)
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(settings.endpoint_url))
    create_job_of_the_page()
    yield Shop(settings, glue)
    glue.end()
    forget(PACKAGE)


def create_job_of_the_page() -> None:
    (block,) = (
        block
        for section in sections(ROOT / "docs" / "glue.md")
        for block in section.blocks
        if "create_job" in block.text
    )
    exec(compile(block.text, "glue.md", "exec"), {})


def land_orders(settings: Settings) -> None:
    days = [date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)]
    rows = pa.table({"day": days, "amount": pa.array([10, 5, 20, 700], pa.int64())})
    client = Catalog.of(settings).client
    client.create_namespace("bronze")
    table = client.create_table("bronze.orders", schema=rows.schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(rows)


def interrupt_once_said(log: Path, text: str) -> None:
    wait_for(lambda: log.is_file() and text in log.read_text(), f"{text!r} in {log}")
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.scenario
@on_glue
def test_a_job_computes_the_partitions_of_a_run(shop: Shop) -> None:
    land_orders(shop.settings)
    result = shop.run("gold.totals", partition=("2026-01-01", "2026-01-03"))

    assert result.success, (result.messages, shop.glue.log("jr_0").read_text())
    loaded = Catalog.of(shop.settings).load("gold.totals").scan().to_arrow().to_pylist()
    assert sorted((row["day"].day, row["total"]) for row in loaded) == [(1, 15), (2, 20)]
    metadata = result.asset("gold.totals").metadata
    assert metadata["dagster/row_count"] == 2
    assert metadata["AWS Glue Job Run ID"] == "jr_0"
    found = {check.name: check for check in result.checks}
    assert {name: check.passed for name, check in found.items()} == {
        "not_null_day": True,
        "few": False,
        "round": False,
        "refused_share": True,
        "in_partitions": True,
        "has_partition": True,
        "no_anomaly": True,
    }
    assert found["few"].metadata["sample"] == [{"day": "2026-01-03", "total": 700}]
    (logged,) = [line for line in shop.logged() if line.startswith("computed by")]
    assert str(ROOT) not in logged
    assert not has_context(), "This process has started a Spark."
    assert shop.left == []


def run_interrupted(shop: Shop, said: str) -> None:
    waiting = threading.Thread(target=interrupt_once_said, args=(shop.glue.log("jr_0"), said))
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        shop.run("gold.slow")
    waiting.join()


@on_glue
def test_an_interrupt_stops_the_job(shop: Shop) -> None:
    land_orders(shop.settings)
    run_interrupted(shop, "slow begins")

    assert shop.glue.stopped == {"jr_0"}
    assert shop.recorded_snapshots("gold.slow") == []
    assert shop.left == []


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("print('done')", "ended without a result"),
        ("raise SystemExit(3)", "failed: the run jr_0 ended as FAILED"),
    ],
)
def test_a_job_without_a_result_fails_the_run(shop: Shop, script: str, failure: str) -> None:
    shop.set_script(script)
    result = shop.run("gold.slow")

    assert not result.success
    assert f"The job glue:lakehouse of gold.slow {failure}" in str(result.messages)
    assert shop.recorded_snapshots("gold.slow") == []
