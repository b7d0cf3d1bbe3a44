"""The precedence of Spark's configuration."""

from dataclasses import replace

import pytest

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.errors import SettingsError
from lakehouse.runtime.session_configuration import (
    driver_memory,
    is_default,
    session_configuration,
    submit_arguments,
)
from lakehouse.runtime.spark_master import MasterState, Worker
from lakehouse.runtime.spark_properties import write_properties
from lakehouse.settings import Settings

MASTER = "spark://10.0.0.1:7077"
MASTERS = ["local[*]", MASTER, "yarn"]
STATE = MasterState((Worker(16, 16, 64_000, 64_000),))
REQUIRED = {
    "spark.hadoop.fs.permissions.umask-mode": "000",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.extensions": "com.example.Extensions",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.warehouse.dir": "/tables",
}
CLOSED = {
    "spark.authenticate": "false",
    "spark.driver.bindAddress": "0.0.0.0",
    "spark.local.dir": "/scratch",
    "spark.ui.enabled": "true",
}
OPTIONS, CLASS_PATH = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"


def with_defaults(settings, tmp_path, configuration, master=MASTER, **env):
    """Return settings with a `spark-defaults.conf`."""
    lines = (f"{name}={value}\n" for name, value in configuration.items())
    (tmp_path / "spark-defaults.conf").write_text("".join(lines))
    cluster = ClusterSettings.from_env({"SPARK_CONF_DIR": str(tmp_path), **env})
    return replace(settings, spark_master=master, spark_memory=None, cluster=cluster)


def read_at_start(settings, tmp_path):
    """Return the configuration that Spark reads at its start: the last value of a name."""
    configuration = session_configuration(settings, state=STATE)
    file = write_properties(settings, tmp_path, configuration)
    lines = filter(None, file.read_text().splitlines())
    return dict(line.partition("=")[::2] for line in lines)


@pytest.mark.parametrize("master", MASTERS)
def test_spark_defaults_override_the_defaults_of_the_lakehouse(settings, tmp_path, master):
    choice = {"spark.driver.memory": "9g", "spark.sql.shuffle.partitions": "77"}
    if master != "local[*]":
        choice |= {"spark.executor.memory": "7g", "spark.dynamicAllocation.enabled": "false"}
    there = with_defaults(settings, tmp_path, choice, master)

    read = read_at_start(there, tmp_path)
    assert {name: read[name] for name in choice} == choice
    assert all(is_default(there, name) for name in choice)


@pytest.mark.parametrize("master", MASTERS)
def test_spark_defaults_do_not_override_what_tables_require(settings, tmp_path, master):
    there = with_defaults(settings, tmp_path, REQUIRED, master)

    read = read_at_start(there, tmp_path)
    assert not read.items() & REQUIRED.items()
    assert not any(is_default(there, name) for name in REQUIRED)


def test_spark_defaults_do_not_open_a_spark_of_one_machine(settings, tmp_path):
    read = read_at_start(with_defaults(settings, tmp_path, CLOSED, "local[*]"), tmp_path)
    assert not read.items() & CLOSED.items()


def test_settings_override_spark_defaults_and_spark_conf_overrides_both(settings, tmp_path):
    defaults = {"spark.driver.memory": "9g", "spark.executor.cores": "5", "spark.x": "1"}
    env = {"LAKEHOUSE_EXECUTOR_CORES": "2", "LAKEHOUSE_SPARK_CONF": "spark.x=2"}
    there = replace(with_defaults(settings, tmp_path, defaults, **env), spark_memory="3g")

    read = read_at_start(there, tmp_path)
    assert (read["spark.driver.memory"], read["spark.executor.cores"]) == ("3g", "2")
    assert read["spark.x"] == "2"
    conf = ClusterSettings.from_env({"LAKEHOUSE_SPARK_CONF": "spark.executor.cores=7"})
    assert session_configuration(replace(there, cluster=conf))["spark.executor.cores"] == "7"


def test_a_driver_has_2_gb_unless_a_setting_says_otherwise(settings):
    assert Settings.from_env({}).spark_memory is None
    assert driver_memory(replace(settings, spark_memory=None)) == "2g"
    assert driver_memory(replace(settings, spark_memory="3g")) == "3g"


@pytest.mark.parametrize("master", ["local[*]", MASTER])
def test_java_options_and_lists_of_spark_conf_are_added(settings, tmp_path, master):
    """Java takes the last of two values: temporary files stay in the home."""
    given = ClusterSettings(
        configuration=(
            (OPTIONS, "-Djava.io.tmpdir=/tmp"),
            (CLASS_PATH, "/x.jar"),
            ("spark.executorEnv.PYTHONPATH", "/opt/modules"),
        )
    )
    here = replace(settings, spark_master=master, project_root=tmp_path)
    ours, joined = (
        session_configuration(here),
        session_configuration(replace(here, cluster=given)),
    )

    assert joined[OPTIONS] == f"-Djava.io.tmpdir=/tmp {ours[OPTIONS]}"
    assert joined[CLASS_PATH] == f"{ours[CLASS_PATH]}:/x.jar"
    assert joined["spark.executorEnv.PYTHONPATH"].endswith("/opt/modules")


def test_jars_of_spark_conf_are_added_on_a_cluster(settings):
    given = ClusterSettings(configuration=(("spark.jars", "/x.jar"),))
    jars = session_configuration(replace(settings, spark_master=MASTER, cluster=given))

    assert jars["spark.jars"].startswith("file://")
    assert jars["spark.jars"].endswith(",/x.jar")


@pytest.mark.parametrize("text", [None, "", "pyspark-shell"])
def test_no_submit_arguments(settings, text):
    assert (
        submit_arguments(replace(settings, cluster=ClusterSettings(pyspark_arguments=text)))
        == []
    )


def test_submit_arguments_are_passed_on_without_the_shell(settings):
    given = ClusterSettings(pyspark_arguments="--packages a:b:1 -c 'spark.b=x y' pyspark-shell")
    arguments = submit_arguments(replace(settings, cluster=given))
    assert arguments == ["--packages", "a:b:1", "-c", "spark.b=x y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--conf 'spark.a=s3cret pyspark-shell", "cannot be read: No closing quotation"),
        ("--properties-file s3cret.conf", "contains --properties-file"),
        ("--driver-class-path=s3cret.jar", "contains --driver-class-path"),
        ("--conf spark.driver.extraJavaOptions=-Ds3cret", f"contains {OPTIONS}"),
    ],
)
def test_submit_arguments_that_spark_cannot_start_with_are_rejected(settings, text, message):
    given = ClusterSettings(pyspark_arguments=text)
    with pytest.raises(SettingsError, match=message) as raised:
        submit_arguments(replace(settings, cluster=given))
    assert "s3cret" not in str(raised.value)
