"""What is asked of a cluster."""

from dataclasses import replace

import pytest

from lakehouse.settings.cluster_settings import ClusterSettings
from lakehouse.spark.executor_configuration import executor_configuration
from lakehouse.spark.spark_address import MasterState, Worker

MASTER = "spark://10.0.0.1:7077"
LARGE = Worker(cores=16, free_cores=16, memory_mb=64_000, free_memory_mb=64_000)
ELSEWHERE = ("yarn", "k8s://https://10.0.0.1:6443")


@pytest.fixture
def on_cluster(settings):
    """Settings of a process whose Spark works on a standalone cluster."""
    return replace(settings, spark_master=MASTER)


def asked(settings, *workers, **given):
    """Return what is asked of some workers, by the last part of its name."""
    here = replace(settings, cluster=ClusterSettings(**given))
    state = MasterState(tuple(workers)) if workers else None
    configuration = executor_configuration(here, state)
    return {name.removeprefix("spark."): value for name, value in configuration.items()}


def of_cores(*cores):
    """Return idle workers of so many cores."""
    return [Worker(number, number, number * 1024, number * 1024) for number in cores]


def test_a_quarter_of_the_cores_is_left_to_others(on_cluster):
    configuration = asked(on_cluster, LARGE, LARGE)

    assert configuration["cores.max"] == "24"
    assert configuration["executor.cores"] == "4"
    assert configuration["executor.memory"] == "16000m"
    assert configuration["sql.shuffle.partitions"] == "72"
    assert configuration["sql.files.minPartitionNum"] == "24"


def test_executors_fit_on_what_others_left(on_cluster):
    worker = Worker(cores=8, free_cores=2, memory_mb=32_000, free_memory_mb=8_000)
    configuration = asked(on_cluster, worker)

    assert configuration["executor.cores"] == "2"
    assert configuration["executor.memory"] == "8000m"
    assert configuration["cores.max"] == "6"


def test_what_is_said_of_executors_is_asked_as_it_is_said(on_cluster):
    configuration = asked(
        on_cluster, LARGE, executors=3, executor_cores=2, executor_memory="6g"
    )

    assert configuration["executor.instances"] == "3"
    assert configuration["executor.cores"] == "2"
    assert configuration["executor.memory"] == "6g"
    assert configuration["cores.max"] == "6"
    assert configuration["dynamicAllocation.enabled"] == "false"


@pytest.mark.parametrize(
    ("workers", "most", "cores", "together"),
    [
        ([1], 1, 1, 1),
        ([2], 1, 1, 1),
        ([4], 3, 3, 3),
        ([8], 6, 3, 6),
        ([16], 12, 4, 12),
        ([17], 13, 4, 12),
        ([2, 2], 3, 1, 3),
        ([4, 4], 6, 3, 6),
        ([3, 3], 5, 1, 5),
        ([8, 8], 12, 4, 12),
        ([4, 4, 4], 9, 3, 9),
        ([4] * 5, 15, 3, 15),
        # By three or four cores each, two of the 14 would be left out.
        ([16, 2], 14, 2, 14),
        ([10] * 7, 53, 4, 52),
    ],
    ids=str,
)
def test_executors_have_as_many_cores_as_fill_the_share_of_an_application(
    on_cluster, workers, most, cores, together
):
    """By four cores each, two workers of four would give one executor: half of them."""
    configuration = asked(on_cluster, *of_cores(*workers))

    assert (configuration["cores.max"], configuration["executor.cores"]) == (
        str(most),
        str(cores),
    )
    room = sum(number // cores for number in workers)
    assert cores * min(most // cores, room) == together


@pytest.mark.parametrize("master", ELSEWHERE)
def test_where_no_page_tells_of_cores_spark_keeps_its_own_numbers(settings, master):
    configuration = asked(replace(settings, spark_master=master))

    assert "sql.shuffle.partitions" not in configuration
    assert "executor.cores" not in configuration


def test_where_the_page_of_a_standalone_master_is_closed_executors_have_a_core_each(on_cluster):
    """By Spark itself they take all cores of their worker, and the memory for one."""
    configuration = asked(on_cluster)

    assert configuration["executor.cores"] == "1"
    assert "sql.shuffle.partitions" not in configuration
