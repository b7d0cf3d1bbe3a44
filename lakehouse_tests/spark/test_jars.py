"""Missing and damaged jars are found before Spark starts, with the next step."""

from dataclasses import replace
from hashlib import sha256

import pytest

from lakehouse.errors import SetupError
from lakehouse.spark import jars
from lakehouse.spark.jars import Jar

CONTENT = b"as published"
HADOOP = {"4.1": "3.4.2", "3.5": "3.3.4"}
"""The Hadoop that is in each line of Spark."""
JAR = Jar("test.group:small:1.0", sha256(CONTENT).hexdigest())


@pytest.fixture
def cached(settings, tmp_path):
    """Settings whose cache holds the jar."""
    cached = replace(settings, cache_dir=tmp_path / "cache")
    file = jars.path(cached, JAR)
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    return cached


def test_a_session_does_not_start_without_a_jar(cached):
    jars.path(cached, JAR).unlink()

    with pytest.raises(
        SetupError, match=r"test\.group_small-1\.0\.jar is missing\. Run `lakehouse setup`"
    ):
        jars.require(cached, (JAR,))


def test_a_jar_with_another_content_is_found_by_its_hash(cached):
    file = jars.path(cached, JAR)
    file.write_bytes(CONTENT[::-1])

    assert jars.problem(JAR, file).endswith(f"expected {JAR.sha256}.")


@pytest.mark.parametrize(
    ("line", "iceberg"), [("4.1", "1.12.0"), ("3.5", "1.12.0"), ("3.5", "1.7.1")]
)
def test_each_jar_is_pinned_to_one_version_and_content(cached, line, iceberg, monkeypatch):
    monkeypatch.setattr(jars, "spark_line", lambda: line)
    runtime, *others = jars.pinned(replace(cached, deployment="aws", iceberg=iceberg))
    assert f"runtime-{line}_" in runtime.coordinate
    assert runtime.coordinate.endswith(f":{iceberg}")
    for jar in (runtime, *others):
        assert jar.coordinate.count(":") == 2
        assert len(jar.sha256) == 64
    assert [jar.coordinate for jar in others if ":hadoop-aws:" in jar.coordinate] == [
        f"org.apache.hadoop:hadoop-aws:{HADOOP[line]}"
    ]


def test_an_iceberg_that_the_spark_does_not_have_is_named(cached, monkeypatch):
    monkeypatch.setattr(jars, "spark_line", lambda: "4.1")
    with pytest.raises(SetupError) as error:
        jars.pinned(replace(cached, iceberg="1.7.1"))
    assert str(error.value) == (
        "PySpark 4.1 is installed, and LAKEHOUSE_ICEBERG is 1.7.1; expected one of 4.1 with"
        " 1.12.0, 3.5 with 1.12.0, 3.5 with 1.7.1. Correct LAKEHOUSE_ICEBERG, or install another"
        " PySpark."
    )


def test_an_iceberg_that_cannot_read_the_catalog_file_is_rejected_there(cached, monkeypatch):
    monkeypatch.setattr(jars, "spark_line", lambda: "3.5")
    glue_5 = replace(cached, iceberg="1.7.1")
    with pytest.raises(SetupError, match=r"expected 1\.12\.0 there\. Unset LAKEHOUSE_ICEBERG"):
        jars.pinned(glue_5)
    assert jars.pinned(replace(glue_5, deployment="aws"))


def test_what_reads_a_bucket_is_pinned_where_there_is_one(cached):
    on_aws = jars.pinned(replace(cached, deployment="aws"))

    assert set(on_aws) == {*jars.pinned(cached), *jars.s3a()}
    assert len(on_aws) > len(jars.pinned(cached))
