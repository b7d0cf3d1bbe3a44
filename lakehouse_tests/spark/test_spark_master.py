"""What a master says of a cluster, and what is said of one that gives nothing."""

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from lakehouse.settings.cluster_settings import ClusterSettings
from lakehouse.spark import spark_address
from lakehouse.spark.executors import no_executor
from lakehouse.spark.session_configuration import session_configuration
from lakehouse.spark.spark_address import (
    Application,
    MasterState,
    Worker,
    master_page,
    read_master,
)

MASTER = "spark://10.0.0.1:7077"
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
        monkeypatch.setattr(spark_address, "_PAGE_PORT", server.server_port)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def on_cluster(settings):
    """Settings of a process whose Spark works on a standalone cluster."""
    return replace(settings, spark_master=MASTER)


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


def test_the_page_of_a_master_is_where_spark_puts_it_unless_it_is_said():
    assert master_page(ClusterSettings(), MASTER) == "http://10.0.0.1:8080"
    assert master_page(ClusterSettings(master_page="http://here:1"), MASTER) == "http://here:1"
    assert master_page(ClusterSettings(), "k8s://https://10.0.0.1:6443") == ""


def test_the_driver_is_reached_where_it_is_said(on_cluster):
    given = ClusterSettings(driver_host="10.0.0.7", driver_port=40000)
    configuration = session_configuration(replace(on_cluster, cluster=given))

    assert configuration["spark.driver.host"] == "10.0.0.7"
    assert configuration["spark.driver.port"] == "40000"
    assert configuration["spark.driver.blockManager.port"] == "40020"
    assert configuration["spark.ui.port"] == "40040"
    assert configuration["spark.port.maxRetries"] == "19"


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
