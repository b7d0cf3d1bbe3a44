"""A check warns about a run with unusual metrics, and stops nothing."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse.cli.output.ingest_report import summarize
from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.orchestration.runs.run_result import CheckResult
from lakehouse.quality.check_jobs import check
from lakehouse.quality.metrics.metric import NO_ANOMALY, Metric
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.conftest import settings_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METRICS = TABLES["monitoring.data_quality_metrics"]
RAW = "bronze.raw_fruits"


def remember(pipeline: Pipeline, days: int, rows: int) -> None:
    now = datetime.now(UTC)
    for ago in range(days, 0, -1):
        run_id = f"{ago} days ago"
        metric = Metric(RAW, "nr_rows", rows + ago % 3, now - timedelta(days=ago))
        append_once(
            pipeline.engine, METRICS, [metric.row(run_id)], run_id, made_at="measured_at"
        )


@pytest.fixture(scope="module")
def fruits(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    pipeline = Pipeline(settings_at(tmp_path_factory.mktemp("anomaly") / "home"), "fruits")
    remember(pipeline, 30, 300)
    return pipeline


def evaluated(checks: tuple[CheckResult, ...]) -> dict[str, CheckResult]:
    return {found.table: found for found in checks if found.name == NO_ANOMALY}


def test_a_small_delivery_is_a_warning_that_explains_itself(fruits: Pipeline) -> None:
    fruits.write("a.csv", "id,fruit,berry\n1,Apple,false\n2,Grape,true\n")
    result = fruits.ingest()

    assert result.success
    found = evaluated(result.runs[0].checks)
    assert found["silver.fruits"].passed
    assert (
        found["silver.fruits"].description
        == "No metric has enough history to be compared with."
    )
    assert (found[RAW].passed, found[RAW].severity, found[RAW].blocking) == (
        False,
        "WARN",
        False,
    )
    assert found[RAW].description.startswith("nr_rows: 2 rows on ")
    assert "had 300 to 302 (median 301); expected at least " in found[RAW].description
    assert result.runs[0].asset("silver.fruits").status == "published"
    assert any(
        line.startswith(f"{RAW} is unlike its recent past: nr_rows: 2 rows on ")
        for line in summarize(result)
    )


def test_alone_it_judges_what_was_measured_last(fruits: Pipeline) -> None:
    found = evaluated(check(definitions, fruits.settings, [RAW, "silver.fruits"]).checks)

    assert not found[RAW].passed
    assert found[RAW].description.startswith("nr_rows: 2 rows on ")
