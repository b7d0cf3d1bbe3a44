"""Each line of `lakehouse doctor`, and the next step of a failed one."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.alerts.alerts_sensor import HEARTBEAT_FILE, Heartbeat
from lakehouse.cli.project.doctor_checks import findings
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.spark.spark_session import open_session
from lakehouse.storage.json_files import write_json
from lakehouse_tests.cli.outcomes import stop_sensor

CLUSTER = {"spark_master": "spark://127.0.0.1:1"}


def line(settings, name):
    return next(finding for finding in findings(settings) if finding.name == name)


def test_on_a_machine_that_is_set_up_all_is_well(settings):
    found = findings(settings)

    assert [finding.name for finding in found if not finding.ok] == []
    assert [finding.name for finding in found] == [
        "python", "java", "jars", "iceberg", "classes", "spark", "executors", "deployment", "project", "home", "catalog", "tables", "disk", "alerts", "feeds",
    ]  # fmt: skip


@pytest.mark.long
def test_a_stopped_sensor_with_waiting_files_fails(settings):
    stop_sensor(settings, "fruits_files")
    assert line(settings, "feeds").ok
    file = settings.home / "inbox" / "fruits" / "a.csv"
    file.parent.mkdir(parents=True)
    file.write_text("id,fruit,berry\n")
    os.utime(file, (1_700_000_000,) * 2)

    found = line(settings, "feeds")

    assert not found.ok
    assert found.found == "sensor fruits_files is stopped, files waiting: 1"
    assert "`lakehouse ingest fruits`" in found.next_step


@pytest.mark.parametrize(
    ("changes", "told", "said"),
    [
        ({}, {}, "this Python, on this machine"),
        (CLUSTER, {}, "python3 of each worker"),
        (CLUSTER, {"pyspark_python": "/opt/python"}, "/opt/python of each worker"),
        (CLUSTER, {"executor_python": "/opt/python"}, "/opt/python of each worker (LAKEHOUSE_"),
        ({"spark_remote": "sc://127.0.0.1:1"}, {}, "that of the Spark server"),
    ],
)
def test_which_python_executors_have_is_said(settings, changes, told, said):
    cluster = replace(settings.cluster, pyspark_python=None)
    found = line(replace(settings, **changes, cluster=replace(cluster, **told)), "executors")

    assert found.ok
    assert said in found.found


def test_looking_makes_no_home(settings):
    findings(settings)

    assert not settings.home.exists()


def test_a_spark_server_that_does_not_answer_is_named(settings):
    found = line(replace(settings, spark_remote="sc://127.0.0.1:1"), "spark")

    assert not found.ok
    assert found.found.startswith("sc://127.0.0.1:1 does not answer")


@pytest.mark.long
def test_aws_without_a_region_says_so(aws_settings):
    found = line(replace(aws_settings, region=None), "deployment")

    assert not found.ok
    assert found.next_step == "Set AWS_REGION."


@pytest.mark.long
def test_a_catalog_that_does_not_answer_is_named(aws_settings):
    found = line(replace(aws_settings, endpoint_url="http://127.0.0.1:1"), "catalog")

    assert not found.ok
    assert "127.0.0.1:1" in found.found


def test_a_home_that_was_moved_is_told_from_one_that_was_not(spark, settings, tmp_path):
    session = open_session(settings, Catalog.of(settings))
    session.sql("CREATE NAMESPACE silver")
    session.sql("CREATE TABLE silver.fruits (id BIGINT) USING iceberg")
    session.sql(
        "CREATE TABLE silver.elsewhere (id BIGINT) USING iceberg LOCATION"
        f" '{tmp_path / 'declared'}'"
    )
    assert line(settings, "home").ok
    assert line(settings, "catalog").found.startswith("2 tables")

    moved = replace(settings, home=tmp_path / "moved")
    settings.home.rename(moved.home)
    found = line(moved, "home")
    assert not found.ok
    assert (
        f"{moved.home} was moved or copied: the files of 1 table, such as silver.fruits, are in"
        f" {settings.home}" in found.found
    )
    assert str(settings.home) in found.next_step


def test_a_catalog_that_cannot_be_opened_does_not_hide_the_other_lines(settings):
    settings.home.mkdir()
    (settings.home / "catalog.db").write_text(
        "this is no database, and long enough to be told from one" * 100
    )

    found = {finding.name: finding for finding in findings(settings)}
    assert not found["catalog"].ok
    assert not found["tables"].ok
    assert found["home"].ok
    assert found["disk"].ok


def test_a_catalog_that_is_gone_beside_its_tables_fails_and_none_is_made(settings):
    metadata = (
        settings.home
        / "warehouse"
        / "silver"
        / "fruits-2e00ebe171564d1ca6add1552b2df56a"
        / "metadata"
    )
    metadata.mkdir(parents=True)
    (metadata / "00000-a.metadata.json").touch()

    found = line(settings, "catalog")
    assert not found.ok
    assert "catalog.db is missing" in found.found
    assert not (settings.home / "catalog.db").exists()


def test_files_that_are_gone_are_named_with_their_table(spark, settings):
    session = open_session(settings, Catalog.of(settings))
    session.sql("CREATE NAMESPACE silver")
    for name in ("whole", "data_gone", "metadata_gone", "list_gone"):
        session.sql(f"CREATE TABLE silver.{name} USING iceberg AS SELECT 1 AS id")
    assert line(settings, "tables").found == "all files of 4 tables are there"

    folder = settings.home / "warehouse" / "silver"
    gone = {
        "data_gone": next(folder.glob("data_gone-*/data/*.parquet")),
        "metadata_gone": next(folder.glob("metadata_gone-*/metadata/*.metadata.json")),
        "list_gone": next(folder.glob("list_gone-*/metadata/snap-*.avro")),
    }
    for file in gone.values():
        file.unlink()
    found = line(settings, "tables")
    assert not found.ok
    assert "whole" not in found.found
    for name, file in gone.items():
        assert f"silver.{name} " in found.found
        assert str(file) in found.found


def ago(**how_long: float) -> datetime:
    return datetime.now(UTC) - timedelta(**how_long)


def beat(settings, heartbeat: Heartbeat) -> None:
    write_json(settings.home / HEARTBEAT_FILE, heartbeat, Heartbeat)


def test_without_dev_nobody_is_said_to_look(settings):
    assert line(settings, "alerts").found.startswith("no heartbeat yet, no monitor runs now")
    beat(settings, Heartbeat(ago(hours=3), 0, 0))
    found = line(settings, "alerts")
    assert found.ok
    assert found.found.startswith("last heartbeat ")
    assert ", no monitor runs now" in found.found


@pytest.mark.long
def test_a_last_look_that_is_old_fails_where_somebody_is_to_look(settings):
    beat(settings, Heartbeat(ago(minutes=6), 0, 0))
    expecting = replace(settings, heartbeat_url="http://127.0.0.1:1/ping")
    found = line(expecting, "alerts")
    assert not found.ok
    assert "start the sensor `alerts`" in found.next_step
    beat(settings, Heartbeat(ago(), 0, 0))
    assert line(expecting, "alerts").ok
