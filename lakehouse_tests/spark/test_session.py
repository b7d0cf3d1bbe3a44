"""The session, and the two catalogs on it."""

import socket
import struct
from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.spark import jars
from lakehouse.spark.executor_configuration import archive_configuration, python_of_executors
from lakehouse.spark.session_configuration import session_configuration
from lakehouse.spark.spark_session import open_session


def test_a_catalog_of_the_same_name_in_another_home_is_not_mixed_up(spark, settings, tmp_path):
    other = replace(settings, home=tmp_path / "other")
    for one in (settings, other):
        open_session(one, Catalog.of(one)).sql("CREATE NAMESPACE silver")
    open_session(other, Catalog.of(other)).sql(
        "CREATE TABLE lakehouse.silver.fruits (id BIGINT) USING iceberg"
    )

    assert Catalog.of(settings).tables() == []
    assert Catalog.of(other).tables() == ["silver.fruits"]


def test_a_client_of_a_spark_server_sets_nothing_that_only_a_server_can(settings):
    remote = replace(settings, spark_remote="sc://127.0.0.1:15002")

    assert session_configuration(remote) == {
        "spark.remote": "sc://127.0.0.1:15002",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.constraintPropagation.enabled": "false",
    }


def test_a_cluster_is_sent_the_jars_and_can_reach_the_driver(settings):
    cluster = session_configuration(replace(settings, spark_master="spark://10.0.0.1:7077"))

    assert cluster["spark.jars"].count("file:///") == len(jars.pinned(settings))
    assert "spark.driver.bindAddress" not in cluster


def test_executors_of_a_cluster_run_the_python_of_an_archive(settings, tmp_path):
    file = tmp_path / "env.tar.gz"
    file.touch()
    given = ("spark.archives", "hdfs:///mine.zip")
    cluster = replace(settings.cluster, executor_archive=str(file), configuration=(given,))
    there = replace(settings, spark_master="spark://10.0.0.1:7077", cluster=cluster)
    archive = archive_configuration(there)
    configuration = session_configuration(there, archive=archive)

    assert (
        configuration["spark.archives"] == f"{file.as_uri()}#lakehouse-python,hdfs:///mine.zip"
    )
    python = "./lakehouse-python/bin/python"
    assert configuration["spark.sql.execution.pyspark.python"] == python
    assert python_of_executors(there) == python
    # Its clients send it: they see nothing of what a server was started with.
    server = session_configuration(there, is_server=True)
    assert server["spark.archives"] == "hdfs:///mine.zip"


def test_spark_reads_a_bucket_where_icebergs_own_client_does(aws_settings):
    configuration = session_configuration(aws_settings)
    given = {
        name.removeprefix("spark.hadoop.fs."): value
        for name, value in configuration.items()
        if ".fs.s3" in name
    }

    assert given.pop("s3a.aws.credentials.provider")
    retention = given.pop("s3a.directory.marker.retention", None)
    assert retention == ("keep" if is_spark_3() else None)
    assert given == {
        "s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "s3a.endpoint": aws_settings.endpoint_url,
        "s3a.endpoint.region": aws_settings.region,
        "s3a.path.style.access": "true",
        "s3a.connection.ssl.enabled": "false",
    }
    assert ".fs.s3" not in str(session_configuration(replace(aws_settings, deployment="local")))


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2, 3]"])
def test_no_secret_is_among_what_spark_is_started_with(settings, master):
    given = session_configuration(replace(settings, spark_master=master))
    assert given["spark.authenticate"] == "true"
    assert not [name for name in given if "secret" in name]


def test_the_driver_answers_nobody_who_does_not_know_its_secret(spark):
    """A request for a block, as any process of the machine could send it."""
    port = block_manager_port(spark)
    body = b"no request that shows a secret"
    request = struct.pack(">bqi", 3, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(struct.pack(">q", len(request) + 8) + request)
        said = client.recv(10_000).decode(errors="replace")
    assert "Expected SaslMessage" in said


def block_manager_port(spark) -> int:
    """Where the driver gives away blocks."""
    env = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get()
    return env.blockManager().blockManagerId().port()


def test_the_first_compiler_alone_has_as_much_room_for_its_code_as_both(spark):
    """By itself it has 48 MB, and Spark ends once they are full."""
    management = spark.sparkContext._jvm.java.lang.management.ManagementFactory
    pools = management.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())
    assert room == 512 * 1024 * 1024
