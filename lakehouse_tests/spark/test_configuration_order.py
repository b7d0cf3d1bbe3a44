"""The precedence of Spark's configuration."""

from dataclasses import replace

import pytest

from lakehouse.settings.cluster_settings import ClusterSettings
from lakehouse.spark.session_configuration import session_configuration

MASTER = "spark://10.0.0.1:7077"
OPTIONS, CLASS_PATH = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"


def configured(settings, master, **given):
    names = {name.replace("_", "."): value for name, value in given.items()}
    cluster = ClusterSettings(configuration=tuple(names.items()))
    return session_configuration(replace(settings, spark_master=master, cluster=cluster))


@pytest.mark.parametrize("master", ["local[*]", MASTER, "yarn"])
def test_spark_conf_overrides_the_lakehouse(settings, master):
    given = {"spark_driver_host": "10.0.0.9", "spark_x": "1"}

    configuration = configured(settings, master, **given)
    assert configuration["spark.driver.host"] == "10.0.0.9"
    assert configuration["spark.x"] == "1"


@pytest.mark.parametrize(("memory", "expected"), [(None, "2g"), ("3g", "3g")])
def test_driver_memory(settings, memory, expected):
    configuration = session_configuration(replace(settings, spark_memory=memory))
    assert configuration["spark.driver.memory"] == expected


@pytest.mark.parametrize("master", ["local[*]", MASTER])
def test_spark_conf_is_added_to_java_options_and_lists(settings, tmp_path, master):
    """Java takes the last of two values: temporary files stay in the home."""
    here = replace(settings, project_root=tmp_path)
    given = {
        OPTIONS.replace(".", "_"): "-Djava.io.tmpdir=/tmp",
        CLASS_PATH.replace(".", "_"): "/x.jar",
        "spark_executorEnv_PYTHONPATH": "/opt/modules",
    }
    ours, joined = configured(here, master), configured(here, master, **given)

    assert joined[OPTIONS] == f"-Djava.io.tmpdir=/tmp {ours[OPTIONS]}"
    assert joined[CLASS_PATH] == f"{ours[CLASS_PATH]}:/x.jar"
    assert joined["spark.executorEnv.PYTHONPATH"].endswith("/opt/modules")


def test_jars_of_spark_conf_are_added_on_a_cluster(settings):
    jars = configured(settings, MASTER, spark_jars="/x.jar")["spark.jars"]

    assert jars.startswith("file://")
    assert jars.endswith(",/x.jar")
