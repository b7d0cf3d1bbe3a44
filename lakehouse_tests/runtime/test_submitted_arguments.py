"""What PYSPARK_SUBMIT_ARGS says."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.errors import SettingsError
from lakehouse.runtime.session_configuration import session_configuration
from lakehouse.runtime.submitted_arguments import SubmittedArguments


def test_configuration_is_told_from_other_arguments():
    text = (
        "--packages a:b:1 --conf spark.a=1 -c 'spark.b=x y' --conf=spark.c=2 --verbose"
        " --executor-cores 5 --driver-memory=9g --properties-file my.conf pyspark-shell"
    )
    assert SubmittedArguments.parse(text) == SubmittedArguments(
        {
            "spark.a": "1",
            "spark.b": "x y",
            "spark.c": "2",
            "spark.executor.cores": "5",
            "spark.driver.memory": "9g",
        },
        Path("my.conf"),
        ("--packages", "a:b:1", "--verbose"),
    )


@pytest.mark.parametrize("text", [None, "", "pyspark-shell"])
def test_where_nothing_is_said_nothing_is_read(text):
    assert SubmittedArguments.parse(text) == SubmittedArguments()


def test_a_value_that_looks_like_an_option_stays_whole():
    opened = "--add-opens=java.base/java.lang=ALL-UNNAMED"
    text = f'--driver-java-options "{opened}" --conf spark.a=--b=1 --name=--c=2 pyspark-shell'

    assert SubmittedArguments.parse(text) == SubmittedArguments(
        {
            "spark.driver.extraJavaOptions": opened,
            "spark.a": "--b=1",
            "spark.app.name": "--c=2",
        }
    )


def test_an_option_of_others_stays_one_word():
    assert SubmittedArguments.parse("--packages=a:b:1 pyspark-shell").others == (
        "--packages=a:b:1",
    )


@pytest.mark.parametrize("text", ["--conf 'spark.a=s3cret pyspark-shell", "--name s3cret\\"])
def test_what_no_spark_starts_by_is_refused_by_name(settings, text):
    given = ClusterSettings(pyspark_arguments=text)
    with pytest.raises(
        SettingsError, match="PYSPARK_SUBMIT_ARGS cannot be read: No "
    ) as raised:
        session_configuration(replace(settings, cluster=given))

    assert "s3cret" not in str(raised.value)


def test_a_spark_that_is_elsewhere_is_not_started_by_them(settings):
    given = ClusterSettings(pyspark_arguments="--conf 'spark.a=1 pyspark-shell")
    remote = replace(settings, spark_remote="sc://127.0.0.1:1", cluster=given)

    assert session_configuration(remote)["spark.remote"] == "sc://127.0.0.1:1"


def test_what_is_no_configuration_stays_an_argument():
    assert SubmittedArguments.parse("--conf spark.a --jars").others == (
        "--conf",
        "spark.a",
        "--jars",
    )


def test_what_they_hold_is_not_shown():
    arguments = SubmittedArguments.parse("--conf spark.a=s3cret --files s3cret pyspark-shell")
    assert "s3cret" not in repr(arguments)


def test_jars_go_beside_those_of_the_lakehouse(settings):
    given = ClusterSettings(pyspark_arguments="--jars /x.jar pyspark-shell")
    on_cluster = replace(settings, spark_master="spark://10.0.0.1:7077", cluster=given)

    assert session_configuration(on_cluster)["spark.jars"].endswith(",/x.jar")
    assert session_configuration(replace(settings, cluster=given))["spark.jars"] == "/x.jar"


def test_a_file_of_properties_that_is_not_there_is_named(settings, tmp_path):
    text = f"--properties-file {tmp_path / 'none'} pyspark-shell"
    given = ClusterSettings(pyspark_arguments=text)
    with pytest.raises(SettingsError, match=r"--properties-file .*/none, which is not there"):
        session_configuration(replace(settings, cluster=given))
