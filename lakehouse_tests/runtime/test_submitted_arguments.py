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


@pytest.mark.parametrize("text", [None, "", "pyspark-shell", "--conf 'spark.a=1 pyspark-shell"])
def test_where_nothing_is_said_or_a_quote_is_open_nothing_is_read(text):
    assert SubmittedArguments.parse(text) == SubmittedArguments()


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
