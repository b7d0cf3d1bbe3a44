"""The resources that are requested from a cluster."""

from dataclasses import replace

import pytest

from lakehouse.settings.cluster_settings import ClusterSettings
from lakehouse.spark.executor_configuration import executor_configuration
from lakehouse.spark.session_configuration import session_configuration

MASTER = "spark://10.0.0.1:7077"


def requested(settings, master=MASTER, **given):
    """Return the configuration for a cluster, by the last part of its name."""
    here = replace(settings, spark_master=master, cluster=ClusterSettings(**given))
    configuration = executor_configuration(here)
    return {name.removeprefix("spark."): value for name, value in configuration.items()}


def test_the_settings_limit_the_executors(settings):
    configuration = requested(settings, executors=12, executor_cores=2, executor_memory="6g")

    assert configuration["dynamicAllocation.enabled"] == "true"
    assert configuration["dynamicAllocation.maxExecutors"] == "12"
    assert configuration["executor.cores"] == "2"
    assert configuration["executor.memory"] == "6g"
    assert configuration["cores.max"] == "24"
    assert configuration["sql.shuffle.partitions"] == "72"
    assert configuration["sql.files.minPartitionNum"] == "24"


def test_executors_of_a_standalone_cluster_have_one_core(settings):
    """By default they take all cores of their worker, with memory for one."""
    configuration = requested(settings, executors=3)

    assert (configuration["executor.cores"], configuration["cores.max"]) == ("1", "3")
    assert "executor.memory" not in configuration


@pytest.mark.parametrize("master", ["yarn", "k8s://https://10.0.0.1:6443"])
def test_other_clusters_need_no_settings(settings, master):
    assert not {"sql.shuffle.partitions", "executor.cores"} & set(requested(settings, master))
    assert requested(settings, master, executors=3)["dynamicAllocation.maxExecutors"] == "3"


def test_host_of_the_driver(settings):
    given = ClusterSettings(driver_host="10.0.0.7")
    configuration = session_configuration(replace(settings, spark_master=MASTER, cluster=given))

    assert configuration["spark.driver.host"] == "10.0.0.7"
