"""The sample pipelines by a Spark Connect server in front of a cluster, which sees no file of its
clients, on Glue and S3: their tables are what the truth says.
"""

from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.sample_data.bnpl.truth import Truth
from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import LAKEHOUSE
from lakehouse_tests.cluster.spark_cluster import on_account
from lakehouse_tests.processes import start_command

pytestmark = pytest.mark.e2e
FRUITS = {"bronze.raw_fruits": 180, "silver.fruits": 155}


def rows_of(settings: Settings, table: str) -> int:
    """Return how many rows a table has, counted in its files."""
    return Catalog.of(settings).load(table).scan().to_arrow().num_rows


def check_demo(settings: Settings, truth: Truth) -> None:
    """See that the tables of both feeds are what the truth says."""
    assert {name: rows_of(settings, name) for name in FRUITS} == FRUITS
    summary = Catalog.of(settings).load("gold.bnpl_daily_summary").scan().to_arrow()
    found = [tuple(map(str, row.values())) for row in summary.to_pylist()]
    expected = [tuple(map(str, vars(row).values())) for row in truth.daily_summary]
    assert sorted(found) == sorted(expected)
    assert rows_of(settings, "bronze.bnpl_transactions_raw") == truth.totals["bronze"]
    assert rows_of(settings, "silver.bnpl_transactions_clean") == truth.totals["clean"]


def run_on(settings: Settings, home: Path, env: dict[str, str], *arguments: str) -> str:
    """Run a command, and return what it said."""
    ran = start_command([LAKEHOUSE, *arguments], home, env=on_account(settings) | env)
    assert ran.status() == 0, ran.said
    return ran.said


@pytest.mark.soak
def test_the_demo_through_a_connect_server_comes_to_the_truth(
    aws_connect, aws_settings, home, truth
):
    run_on(aws_settings, home, aws_connect.client_environment, "demo")

    check_demo(aws_settings, truth)
