"""Whose configuration of Spark counts."""

from dataclasses import replace

import pytest

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.runtime.configuration_order import driver_memory, overruled
from lakehouse.runtime.session_configuration import session_configuration
from lakehouse.runtime.spark_master import MasterState, Worker
from lakehouse.runtime.spark_properties import default_configuration, write_properties
from lakehouse.runtime.spark_server import local_configuration
from lakehouse.settings import Settings

MASTER = "spark://10.0.0.1:7077"
MASTERS = ["local[*]", MASTER, "yarn"]
STATE = MasterState((Worker(16, 16, 64_000, 64_000),))
NEEDED = {
    "spark.hadoop.fs.permissions.umask-mode": "000",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.extensions": "com.example.Extensions",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.warehouse.dir": "/tables",
}


@pytest.fixture
def told(settings, tmp_path):
    """Gives settings of a Spark that is told its configuration in one of the ways."""

    def tell(way, configuration, master=MASTER, **env):
        entries = [f"{name}={value}" for name, value in configuration.items()]
        folder = tmp_path / "conf"
        folder.mkdir(exist_ok=True)
        if way == "defaults":
            (folder / "spark-defaults.conf").write_text("\n".join(entries))
            env["SPARK_CONF_DIR"] = str(folder)
        elif way == "file":
            (folder / "own.conf").write_text("\n".join(entries))
            file = f"--properties-file {folder / 'own.conf'}"
            env["PYSPARK_SUBMIT_ARGS"] = f"{file} pyspark-shell"
        else:
            options = " ".join(f"--conf '{entry}'" for entry in entries)
            env["PYSPARK_SUBMIT_ARGS"] = f"{options} pyspark-shell"
        cluster = ClusterSettings.from_env(env)
        return replace(settings, spark_master=master, spark_memory=None, cluster=cluster)

    return tell


WAYS = ("defaults", "file", "arguments")


def started_with(settings, tmp_path, state=STATE):
    """Return what Spark reads at its start, by name."""
    configuration = session_configuration(settings, state=state)
    file = write_properties(settings, tmp_path, configuration)
    read = replace(settings.cluster, spark_conf_dir=str(tmp_path), pyspark_arguments=None)
    file.rename(tmp_path / "spark-defaults.conf")
    return default_configuration(replace(settings, cluster=read))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("master", MASTERS)
def test_what_an_administrator_tells_spark_goes_before_what_the_lakehouse_chooses(
    told, tmp_path, way, master
):
    choice = {
        "spark.dynamicAllocation.enabled": "false",
        "spark.driver.memory": "9g",
        "spark.executor.cores": "5",
        "spark.executor.memory": "7g",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.cache.maxEntries": "7",
        "spark.sql.shuffle.partitions": "77",
    }
    settings = told(way, choice, master)
    configuration = session_configuration(settings, state=STATE)

    assert {name: configuration.get(name, value) for name, value in choice.items()} == choice
    read = started_with(settings, tmp_path)
    assert {name: read[name] for name in choice} == choice
    assert overruled(settings, configuration) == ""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("master", MASTERS)
def test_what_the_lakehouse_needs_stays_and_is_named(told, tmp_path, way, master):
    settings = told(way, NEEDED, master)
    needed = session_configuration(replace(settings, cluster=ClusterSettings()))

    assert session_configuration(settings)["spark.sql.session.timeZone"] == "UTC"
    read = started_with(settings, tmp_path)
    assert {name: read[name] for name in NEEDED} == {name: needed[name] for name in NEEDED}
    said = overruled(settings, session_configuration(settings))
    assert said.startswith(
        f"spark-defaults.conf or PYSPARK_SUBMIT_ARGS set {', '.join(NEEDED)},"
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_spark_of_one_machine_stays_closed_to_others(told, way):
    opened = {
        "spark.authenticate": "false",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.local.dir": "/scratch",
        "spark.ui.enabled": "true",
    }
    settings = told(way, opened, "local[*]")
    configuration = session_configuration(settings)

    assert not opened.items() & configuration.items()
    assert ", ".join(opened) in overruled(settings, configuration)
    assert (
        session_configuration(told(way, {"spark.ui.enabled": "false"})).get(
            "spark.ui.enabled", "false"
        )
        == "false"
    )


def test_a_master_of_others_is_named_unless_a_setting_names_one(told):
    said = {"spark.master": "yarn"}
    here, there = told("defaults", said, "local[*]"), told("defaults", said, MASTER)

    assert session_configuration(here)["spark.master"] == "local[*]"
    assert "spark.master" in overruled(here, session_configuration(here))
    assert overruled(there, session_configuration(there)) == ""


def test_a_setting_of_the_lakehouse_goes_before_others_and_its_own_configuration_before_all(
    told,
):
    said = {"spark.driver.memory": "9g", "spark.executor.cores": "5", "spark.x": "1"}
    env = {"LAKEHOUSE_EXECUTOR_CORES": "2", "LAKEHOUSE_SPARK_CONF": "spark.x=2"}
    settings = replace(told("arguments", said, **env), spark_memory="3g")
    configuration = session_configuration(settings)

    assert driver_memory(settings) == configuration["spark.driver.memory"] == "3g"
    assert configuration["spark.executor.cores"] == "2"
    assert configuration["spark.x"] == "2"
    assert overruled(settings, configuration) == ""


def test_the_memory_of_a_driver_is_2_gb_unless_somebody_says_otherwise(settings, told):
    assert driver_memory(replace(settings, spark_memory=None)) == "2g"
    assert driver_memory(told("defaults", {"spark.driver.memory": "9g"})) == "9g"


def test_a_server_of_this_machine_keeps_as_much_for_its_page_as_is_said(told):
    settings = told("defaults", {"spark.ui.retainedJobs": "7"}, "local[*]")
    assert "spark.ui.retainedJobs" not in local_configuration(settings, 15002)


def test_what_somebody_configures_goes_before_what_the_lakehouse_does(settings):
    given = (("spark.ui.enabled", "false"), ("spark.jars", "/x.jar"), ("spark.x", "1"))
    told = replace(settings, spark_master=MASTER, cluster=ClusterSettings(configuration=given))
    configuration = session_configuration(told)

    assert configuration["spark.ui.enabled"] == "false"
    assert configuration["spark.x"] == "1"
    assert configuration["spark.jars"].startswith("file://")
    assert configuration["spark.jars"].endswith(",/x.jar")


@pytest.mark.parametrize("master", ["local[*]", MASTER])
def test_options_of_java_and_a_class_path_stand_beside_those_of_the_lakehouse(settings, master):
    """Of two values of one option Java takes the last: temporary files stay in the home."""
    options, path = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"
    given = ((options, "-Djava.io.tmpdir=/tmp -Da=1"), (path, "/x.jar"))
    here = replace(settings, spark_master=master)
    told = replace(here, cluster=ClusterSettings(configuration=given))
    ours, joined = session_configuration(here), session_configuration(told)

    assert joined[options] == f"-Djava.io.tmpdir=/tmp -Da=1 {ours[options]}"
    assert joined[path] == f"{ours[path]}:/x.jar"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("master", ["local[*]", MASTER])
def test_what_others_tell_spark_of_them_stands_beside_it_too(told, way, master):
    options, path = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"
    settings = told(way, {options: "-Djava.io.tmpdir=/tmp", path: "/x.jar"}, master)
    ours = session_configuration(replace(settings, cluster=ClusterSettings()))
    joined = session_configuration(settings)

    assert joined[options] == f"-Djava.io.tmpdir=/tmp {ours[options]}"
    assert joined[path] == f"{ours[path]}:/x.jar"


def test_modules_of_executors_stand_beside_those_of_the_project(settings, tmp_path):
    name = "spark.executorEnv.PYTHONPATH"
    given = ClusterSettings(configuration=((name, "/opt/modules"),))
    told = replace(settings, project_root=tmp_path, cluster=given)
    assert session_configuration(told)[name] == f"{tmp_path}:/opt/modules"


def test_settings_of_no_environment_say_no_memory():
    assert Settings.from_env({}).spark_memory is None
