"""`lakehouse connect-conf`: what is printed is read by spark-submit, and holds no secret."""

from dataclasses import replace

import pytest

from lakehouse.spark import jars
from lakehouse.spark.connect_server import (
    bounds_to_choose,
    properties_text,
    server_configuration,
)
from lakehouse_tests.conftest import on_aws


def test_it_is_printed_as_a_file_of_properties(lakehouse):
    ran = lakehouse("connect-conf", "--jars", "/opt/jars")

    assert (ran.code, ran.err) == (0, [])
    assert all(line.startswith(("# ", "spark.")) for line in ran.out)
    assert "org.apache.spark.sql.connect.service.SparkConnectServer" in ran.out[1]


def test_a_server_fetches_the_pinned_jars_and_not_what_nothing_uses(settings):
    given = server_configuration(on_aws(settings))

    fetched = given["spark.jars.packages"].split(",")
    assert fetched == [jar.coordinate for jar in jars.pinned(on_aws(settings))]
    assert "software.amazon.awssdk:bundle" in given["spark.jars.excludes"]


def test_jars_that_lie_on_the_server_are_named_there(settings):
    given = server_configuration(on_aws(settings), "/opt/jars/")

    assert "spark.jars.packages" not in given
    names = [jar.file_name for jar in jars.pinned(on_aws(settings))]
    assert given["spark.jars"].split(",") == [f"/opt/jars/{name}" for name in names]


def test_the_catalog_and_the_file_system_are_told(settings):
    given = server_configuration(replace(on_aws(settings), endpoint_url="http://here:1"))

    assert given["spark.sql.catalog.lakehouse.warehouse"] == "s3://lake/warehouse"
    assert given["spark.hadoop.fs.s3a.endpoint"] == "http://here:1"
    assert given["spark.hadoop.fs.s3.impl"].endswith("S3AFileSystem")


def test_a_server_gives_executors_back_that_have_nothing_to_do(settings):
    given = server_configuration(on_aws(settings))

    assert given["spark.dynamicAllocation.enabled"] == "true"
    assert given["spark.dynamicAllocation.shuffleTracking.enabled"] == "true"
    assert given["spark.dynamicAllocation.shuffleTracking.timeout"]


@pytest.mark.parametrize("master", ["yarn", "k8s://https://10.0.0.1:6443"])
def test_no_bound_is_proposed_where_the_cluster_has_bounds_of_its_own(settings, master):
    on_cluster = replace(settings, spark_master=master)
    assert bounds_to_choose(on_cluster, server_configuration(on_cluster)) == ()


@pytest.mark.parametrize("word", ["testing", "secret", "token"])
def test_no_credentials_are_among_it(settings, word):
    assert word not in properties_text(server_configuration(on_aws(settings))).lower()
