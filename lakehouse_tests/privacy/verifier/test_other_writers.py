"""A person is found in what Spark and Dagster write."""

import logging

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings
from lakehouse.tables.person import Person
from lakehouse_tests.privacy.verifier.someone import EMAIL, places, searched

SMALL = Person("customer_id", frozenset({"4711"}), {})


@pytest.mark.spark
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_row_that_spark_deleted_is_found(
    embedded_engine: Engine, settings: Settings, file_format: str
) -> None:
    spark, catalog = embedded_engine.spark, embedded_engine.catalog.name
    table = f"{catalog}.bronze.raw"
    spark.sql(f"CREATE NAMESPACE {catalog}.bronze")
    spark.sql(
        f"CREATE TABLE {table} (client BIGINT, mail STRING) USING iceberg TBLPROPERTIES"
        f" ('write.format.default'='{file_format}', 'write.delete.mode'='merge-on-read',"
        " 'write.parquet.bloom-filter-enabled.column.client'='true')"
    )
    spark.sql(
        f"INSERT INTO {table} VALUES (1, 'a@b.c'), (4711, '{EMAIL.replace(chr(39), '')}')"
    )
    spark.sql(f"DELETE FROM {table} WHERE client = 4711")

    report = searched(settings.home, person=SMALL)

    # Avro has no bounds that manifests could keep.
    assert places(report) == {"data file", "manifest"} - (
        {"manifest"} if file_format == "avro" else set()
    )
    assert report.gaps == ()


@dg.op
def fails() -> None:
    """Tell somebody's address in each way that Dagster keeps."""
    logging.getLogger("a").warning(EMAIL)
    raise ValueError(f"no row for {EMAIL}")


@dg.job
def failing_job() -> None:
    """Run the operation that fails."""
    fails()


@pytest.mark.unit
def test_a_failed_run_is_found(settings: Settings) -> None:
    with open_instance(settings) as instance:
        failing_job.execute_in_process(instance=instance, raise_on_error=False)

        report = searched(settings.home)

    assert {finding.file.partition("/")[0] for finding in report.findings} == {"dagster"}
    assert "table event_logs" in {finding.inside for finding in report.findings}
    assert report.gaps == ()
