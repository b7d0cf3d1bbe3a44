"""Both pipelines on Spark 3.5 with emulators of Glue and S3."""

from importlib.resources import files
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.settings import Settings
from lakehouse_tests.cluster.lake import Lake
from lakehouse_tests.cluster.short_story import check_told, live_through
from lakehouse_tests.cluster.spark_cluster import on_account
from lakehouse_tests.processes import start

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not is_spark_3(), reason="of Spark 3.5; `lakehouse_tests/cluster` has Spark 4.1 on Glue"
    ),
]


@pytest.mark.scenario
def test_fruits_come_are_kept_and_come_again(aws_settings: Settings) -> None:
    lake = Lake(aws_settings, on_account(aws_settings))
    samples = files("lakehouse.sample_data.fruits")
    lake.put("fruits", *sorted(Path(str(samples)).glob("*.csv")))

    lake.run("ingest", "fruits")

    rows = lake.rows("silver.fruits")
    assert len(lake.rows("bronze.raw_fruits")) == 180
    assert (len(rows), sum(row["berry"] for row in rows)) == (155, 57)
    assert len({row["fruit"] for row in rows}) == 155

    lake.run("maintain", "silver.fruits")
    lake.run("ingest", "fruits", "--path", f"s3://{aws_settings.bucket}/archive/fruits")
    assert sorted(map(str, lake.rows("silver.fruits"))) == sorted(map(str, rows))


def test_transactions_come_are_kept_and_computed_anew_and_somebody_is_erased(
    aws_settings: Settings, tmp_path: Path
) -> None:
    account = on_account(aws_settings)
    folder = str(tmp_path / "generated")
    check_told(start(aws_settings.home, live_through, env=account, folder=folder).result())
