"""What the environment says of a cluster."""

import re
from pathlib import Path

import pytest

from lakehouse.errors import SettingsError
from lakehouse.settings import Settings
from lakehouse.settings.cluster_settings import FORBIDDEN_CONFIGURATION, ClusterSettings
from lakehouse_tests.docs.markdown import ROOT, sections

PAGE = ROOT / "docs" / "cluster.md"


def test_nothing_is_said_by_an_empty_environment():
    assert Settings.from_env({}).cluster == ClusterSettings()


def test_executors_and_driver_are_read():
    env = {
        "LAKEHOUSE_EXECUTORS": "3",
        "LAKEHOUSE_EXECUTOR_CORES": "2",
        "LAKEHOUSE_EXECUTOR_MEMORY": "6g",
        "LAKEHOUSE_EXECUTOR_PYTHON": "/opt/python/bin/python3",
        "LAKEHOUSE_EXECUTORS_READ": "never",
        "LAKEHOUSE_EXECUTOR_WAIT_SECONDS": "5",
        "LAKEHOUSE_DRIVER_HOST": "10.0.0.7",
    }

    assert Settings.from_env(env).cluster == ClusterSettings(
        executors=3,
        executor_cores=2,
        executor_memory="6g",
        executor_python="/opt/python/bin/python3",
        executors_read="never",
        wait_seconds=5,
        driver_host="10.0.0.7",
    )


def test_a_standalone_cluster_requires_a_number_of_executors():
    master = {"LAKEHOUSE_SPARK_MASTER": "spark://a:7077"}
    with pytest.raises(
        SettingsError, match=r"LAKEHOUSE_EXECUTORS is not set.+LAKEHOUSE_EXECUTORS=4"
    ):
        Settings.from_env(master)

    assert Settings.from_env(master | {"LAKEHOUSE_EXECUTORS": "2"}).cluster.executors == 2
    assert Settings.from_env({"LAKEHOUSE_SPARK_MASTER": "yarn"}).cluster.executors is None


def test_any_configuration_of_spark_is_taken_with_spaces_in_quotes():
    text = "spark.yarn.queue=night 'spark.executor.extraJavaOptions=-Da=1 -Db=2'"
    given = Settings.from_env({"LAKEHOUSE_SPARK_CONF": text}).cluster.configuration

    assert given == (
        ("spark.yarn.queue", "night"),
        ("spark.executor.extraJavaOptions", "-Da=1 -Db=2"),
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LAKEHOUSE_EXECUTORS", "0", "LAKEHOUSE_EXECUTORS is '0'; expected a number from 1 on"),
        ("LAKEHOUSE_EXECUTORS_READ", "Always", "expected auto, always or never"),
        ("LAKEHOUSE_EXECUTOR_MEMORY", "6", "LAKEHOUSE_EXECUTOR_MEMORY is '6'"),
        ("LAKEHOUSE_DRIVER_HOST", "a b", "expected a name or an address of this machine"),
        ("LAKEHOUSE_EXECUTOR_ARCHIVE", "env.zip", "expected a file such as executors.tar.gz"),
        ("LAKEHOUSE_SPARK_CONF", "spark.a=1 secret", "no name=value as entry 2 of 2"),
        ("LAKEHOUSE_SPARK_CONF", "'spark.a=1", "cannot be read (No closing quotation)"),
        ("LAKEHOUSE_SPARK_CONF", "spark.master=yarn", "LAKEHOUSE_SPARK_MASTER sets it"),
        ("LAKEHOUSE_SPARK_CONF", "spark.sql.ansi.enabled=false", "silently"),
    ],
)
def test_what_cannot_be_is_named(name, value, said):
    with pytest.raises(SettingsError) as raised:
        Settings.from_env({name: value})

    assert said in str(raised.value)
    assert name in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("executors.tar.gz", str(Path("executors.tar.gz").absolute())),
        ("/opt/executors.tgz", "/opt/executors.tgz"),
        ("s3://lake/env/executors.tar.gz", "s3://lake/env/executors.tar.gz"),
    ],
)
def test_an_archive_for_executors_is_a_file_or_an_object(given, place):
    cluster = Settings.from_env({"LAKEHOUSE_EXECUTOR_ARCHIVE": given}).cluster
    assert cluster.executor_archive == place


def test_a_client_of_a_server_is_told_by_name_what_it_cannot_set():
    env = {
        "SPARK_REMOTE": "sc://spark:15002",
        "LAKEHOUSE_EXECUTOR_CORES": "2",
        "LAKEHOUSE_SPARK_CONF": "spark.executor.memory=4g spark.sql.shuffle.partitions=20",
    }
    with pytest.raises(
        SettingsError,
        match=r"LAKEHOUSE_EXECUTOR_CORES, spark\.executor\.memory too, which a client of",
    ):
        Settings.from_env(env)


def test_a_client_of_a_server_is_told_that_its_memory_is_not_that_of_the_server():
    env = {"SPARK_REMOTE": "sc://spark:15002", "LAKEHOUSE_SPARK_MEMORY": "8g"}
    with pytest.raises(SettingsError, match="LAKEHOUSE_SPARK_MEMORY too, which a client of"):
        Settings.from_env(env)

    assert Settings.from_env({"LAKEHOUSE_SPARK_MEMORY": "8g"}).spark_memory == "8g"
    assert Settings.from_env(env | {"LAKEHOUSE_SPARK_MEMORY": ""}).spark_memory is None


def test_the_page_on_clusters_names_what_is_rejected_and_why():
    (section,) = (part for part in sections(PAGE) if part.title == "Whose configuration counts")
    rows = re.findall(r"^\| `(spark\.[\w.]+)` \| (.+) \|$", section.text, re.MULTILINE)
    assert {name: reason.replace("`", "") for name, reason in rows} == FORBIDDEN_CONFIGURATION


@pytest.mark.parametrize("name", FORBIDDEN_CONFIGURATION)
def test_what_the_page_names_is_rejected(name):
    with pytest.raises(SettingsError, match=rf"LAKEHOUSE_SPARK_CONF sets {re.escape(name)}, "):
        Settings.from_env({"LAKEHOUSE_SPARK_CONF": f"{name}=1"})
