"""What is asked of a cluster, and what is said of one that gives nothing."""

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.runtime import spark_master
from lakehouse.runtime.executors import no_executor
from lakehouse.runtime.session_configuration import session_configuration
from lakehouse.runtime.spark_master import (
    Application,
    MasterState,
    Worker,
    executor_configuration,
    master_page,
    master_pages,
    read_master,
)
from lakehouse.runtime.spark_server import local_configuration

MASTER = "spark://10.0.0.1:7077"
LARGE = Worker(cores=16, free_cores=16, memory_mb=64_000, free_memory_mb=64_000)
SMALL = Worker(cores=1, free_cores=1, memory_mb=1024, free_memory_mb=1024)
HELD = Worker(cores=1, free_cores=0, memory_mb=1024, free_memory_mb=0)

PAGE = {
    "status": "ALIVE",
    "workers": [
        {"state": "ALIVE", "cores": 4, "coresfree": 1, "memory": 8000, "memoryfree": 2000},
        {"state": "DEAD", "cores": 4, "coresfree": 4, "memory": 8000, "memoryfree": 8000},
    ],
    "activeapps": [{"id": "app-1", "name": "nightly", "cores": 3}],
}
LEADING = "localhost:7077"
STANDBY = "127.0.0.1:7077"


class Pages(BaseHTTPRequestHandler):
    """The pages of two masters, told apart by the name of their host."""

    def do_GET(self):
        """Answer as the master whose name was asked."""
        leads = self.headers["Host"].startswith("localhost")
        page = PAGE if leads else {"status": "STANDBY", "workers": [], "activeapps": []}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(page).encode())

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def two_masters(monkeypatch):
    """Masters at `LEADING` and `STANDBY`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        monkeypatch.setattr(spark_master, "_PAGE_PORT", server.server_port)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def on_cluster(settings):
    """Settings of a process whose Spark works on a standalone cluster."""
    return replace(settings, spark_master=MASTER)


def asked(settings, *workers, **given):
    """Return what is asked of some workers, by the last part of its name."""
    told = replace(settings, cluster=ClusterSettings(**given))
    state = MasterState(tuple(workers)) if workers else None
    configuration = executor_configuration(told, state)
    return {name.removeprefix("spark."): value for name, value in configuration.items()}


def test_the_page_of_a_master_is_read():
    assert MasterState.parse(PAGE) == MasterState(
        (Worker(4, 1, 8000, 2000),), (Application("app-1", "nightly", 3),)
    )


def test_a_page_that_does_not_answer_tells_nothing():
    assert read_master(ClusterSettings(master_page="http://127.0.0.1:1"), MASTER) is None
    assert read_master(ClusterSettings(), "yarn") is None


def test_of_several_masters_the_one_that_leads_is_asked(two_masters):
    expected = MasterState((Worker(4, 1, 8000, 2000),), (Application("app-1", "nightly", 3),))
    assert read_master(ClusterSettings(), f"spark://{STANDBY},{LEADING}") == expected
    assert read_master(ClusterSettings(), f"spark://{LEADING},{STANDBY}") == expected
    assert read_master(ClusterSettings(), f"spark://{STANDBY}") is None


def test_each_of_several_masters_has_a_page():
    pages = ("http://one:8080", "http://[::1]:8080", "http://two:8080")
    assert master_pages(ClusterSettings(), "spark://one:7077,[::1]:7077,two") == pages


def test_the_page_of_a_master_is_where_spark_puts_it_unless_it_is_said():
    assert master_page(ClusterSettings(), MASTER) == "http://10.0.0.1:8080"
    assert master_page(ClusterSettings(master_page="http://here:1"), MASTER) == "http://here:1"
    assert master_page(ClusterSettings(), "k8s://https://10.0.0.1:6443") == ""


def test_a_quarter_of_the_cores_is_left_to_others(on_cluster):
    configuration = asked(on_cluster, LARGE, LARGE)

    assert configuration["cores.max"] == "24"
    assert configuration["executor.cores"] == "4"
    assert configuration["executor.memory"] == "16000m"
    assert configuration["sql.shuffle.partitions"] == "72"


def test_one_of_two_cores_is_left_to_others(on_cluster):
    configuration = asked(on_cluster, SMALL, SMALL)

    assert configuration["cores.max"] == "1"
    assert configuration["executor.memory"] == "1024m"


def test_executors_fit_on_what_others_left(on_cluster):
    worker = Worker(cores=8, free_cores=2, memory_mb=32_000, free_memory_mb=8_000)
    configuration = asked(on_cluster, worker)

    assert configuration["executor.cores"] == "2"
    assert configuration["executor.memory"] == "8000m"
    assert configuration["cores.max"] == "6"


def test_where_all_is_held_what_would_fit_is_waited_for(on_cluster):
    configuration = asked(on_cluster, HELD, HELD)

    assert configuration["executor.cores"] == "1"
    assert configuration["executor.memory"] == "1024m"


def test_what_is_said_of_executors_is_asked_as_it_is_said(on_cluster):
    configuration = asked(
        on_cluster, LARGE, executors=3, executor_cores=2, executor_memory="6g"
    )

    assert configuration["executor.instances"] == "3"
    assert configuration["executor.cores"] == "2"
    assert configuration["executor.memory"] == "6g"
    assert configuration["cores.max"] == "6"
    assert configuration["dynamicAllocation.enabled"] == "false"


def test_executors_come_and_go_by_themselves(on_cluster):
    configuration = asked(on_cluster)

    assert configuration["dynamicAllocation.enabled"] == "true"
    assert configuration["dynamicAllocation.shuffleTracking.enabled"] == "true"
    assert "cores.max" not in configuration


def test_what_somebody_configures_goes_before_what_the_lakehouse_does(on_cluster):
    given = (("spark.ui.enabled", "false"), ("spark.jars", "/x.jar"), ("spark.x", "1"))
    told = replace(on_cluster, cluster=ClusterSettings(configuration=given))
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


def test_a_server_keeps_what_its_page_shows_where_it_has_one(settings, on_cluster):
    jobs = "spark.ui.retainedJobs"
    assert local_configuration(settings, 15002)[jobs] == "50"
    assert jobs not in local_configuration(on_cluster, 15002)


def test_the_driver_is_reached_where_it_is_said(on_cluster):
    given = ClusterSettings(driver_host="10.0.0.7", driver_port=40000)
    configuration = session_configuration(replace(on_cluster, cluster=given))

    assert configuration["spark.driver.host"] == "10.0.0.7"
    assert configuration["spark.driver.port"] == "40000"
    assert configuration["spark.driver.blockManager.port"] == "40020"
    assert configuration["spark.ui.port"] == "40040"
    assert configuration["spark.port.maxRetries"] == "19"


def test_the_page_of_spark_is_on_where_it_is_a_cluster(settings, on_cluster):
    assert session_configuration(on_cluster)["spark.ui.enabled"] == "true"
    assert session_configuration(settings)["spark.ui.enabled"] == "false"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (None, "no master that leads answers on its page (http://10.0.0.1:8080)"),
        (MasterState(), "it has no worker"),
        (
            MasterState((HELD, HELD), (Application("app-1", "nightly", 2),)),
            "0 of its 2 cores and 0 MB on one worker are free; nightly (app-1) has 2",
        ),
    ],
)
def test_who_has_the_cores_is_said(on_cluster, state, said):
    error = str(no_executor(on_cluster, MASTER, state, 120))

    assert error.startswith(f"No executor came within 120 s on {MASTER}: ")
    assert said in error
    assert "\n" not in error
