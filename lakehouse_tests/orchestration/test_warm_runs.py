"""Runs that start as forks of the run server, on a project of one job, without Spark."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Client, Listener
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
import pytest
from dagster._core.code_pointer import CodePointer
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import LaunchRunContext, WorkerStatus

from lakehouse.orchestration.dagster_internals import _job_origin
from lakehouse.orchestration.runs.orphaned_runs import worker_of
from lakehouse.orchestration.warm_runs.run_launcher import WarmRunLauncher, address_file
from lakehouse.orchestration.warm_runs.run_server import serve
from lakehouse.spark.processes import Process
from lakehouse_tests.processes import wait_for

pytestmark = [pytest.mark.unit, pytest.mark.timeout(400)]

SECONDS = 120
MODULE = "warm_shop"
CODE = """
import os
import time
from pathlib import Path

import dagster as dg

PACKED = "{packed}"
FOLDER = Path(__file__).parent


@dg.op
def pack(context):
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "")
    (FOLDER / context.run_id).write_text(PACKED + threads)
    while (FOLDER / "closed").exists():
        time.sleep(0.05)


@dg.job(executor_def=dg.in_process_executor)
def deliver():
    pack()


defs = dg.Definitions(jobs=[deliver])
"""


class Shop:
    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance
        self.launcher = WarmRunLauncher()
        self.launcher.register_instance(self.instance)

    def write(self, packed: str) -> None:
        (self.folder / f"{MODULE}.py").write_text(CODE.format(packed=packed), encoding="utf-8")

    def asked_for(self) -> dg.DagsterRun:
        pointer = CodePointer.from_module(MODULE, "defs", str(self.folder))
        job = ReconstructableRepository(pointer).get_reconstructable_job("deliver")
        return self.instance.create_run_for_job(
            job.get_definition(),
            status=dg.DagsterRunStatus.STARTING,
            remote_job_origin=_job_origin(MODULE, "deliver"),
            job_code_origin=job.get_python_origin(),
        )

    def launch(self) -> str:
        run = self.asked_for()
        self.launcher.launch_run(LaunchRunContext(run, workspace=None))
        return run.run_id

    def packed(self, run_id: str) -> str:
        file = self.folder / run_id
        return file.read_text() if file.exists() else ""

    def run(self, run_id: str) -> dg.DagsterRun:
        found = self.instance.get_run_by_id(run_id)
        assert found is not None
        return found

    def wait_for(self, run_id: str, status: str) -> None:
        wait_for(lambda: self.run(run_id).status.value == status, status, SECONDS)

    def worker(self, run_id: str) -> Process:
        found = wait_for(lambda: worker_of(self.instance, run_id), "the process", SECONDS)
        assert found is not None
        return found


def start_server(home: Path) -> "subprocess.Popen[bytes]":
    module = "lakehouse.orchestration.warm_runs.run_server"
    server = subprocess.Popen([sys.executable, "-m", module, str(home), str(home / "socket")])
    wait_for(lambda: address_file(home).exists(), "the run server", SECONDS)
    return server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with (
        TemporaryDirectory() as home,
        dg.DagsterInstance.local_temp(home) as instance,
        start_server(Path(home)) as server,
    ):
        shop = Shop(folder, instance)
        shop.write("peas")
        yield shop
        server.send_signal(signal.SIGINT)
    assert server.returncode == 0
    sys.modules.pop(MODULE, None)


@pytest.fixture
def shop(served: Shop) -> Iterator[Shop]:
    yield served
    (served.folder / "closed").unlink(missing_ok=True)


@pytest.mark.long
def test_a_run_is_executed_by_a_fork_with_the_current_code(shop: Shop) -> None:
    run_id = shop.launch()
    shop.wait_for(run_id, "SUCCESS")
    assert shop.packed(run_id) == "peas"
    shop.write("beans")
    run_id = shop.launch()
    shop.wait_for(run_id, "SUCCESS")
    assert shop.packed(run_id) == "beans"


@pytest.mark.long
def test_a_run_is_canceled(shop: Shop) -> None:
    (shop.folder / "closed").touch()
    run_id = shop.launch()
    wait_for(lambda: shop.packed(run_id), "the run", SECONDS)
    assert shop.launcher.terminate(run_id)
    shop.wait_for(run_id, "CANCELED")
    assert not shop.launcher.terminate(run_id)


@pytest.mark.long
def test_the_process_of_a_run_has_failed_when_it_is_killed(shop: Shop) -> None:
    (shop.folder / "closed").touch()
    run_id = shop.launch()
    wait_for(lambda: shop.packed(run_id), "the run", SECONDS)
    health = shop.launcher.check_run_worker_health
    assert health(shop.run(run_id)).status is WorkerStatus.RUNNING
    worker = shop.worker(run_id)
    os.kill(worker.pid, signal.SIGKILL)
    wait_for(lambda: not worker.is_alive, "the end of the run", SECONDS)
    assert health(shop.run(run_id)).status is WorkerStatus.FAILED


def test_a_run_does_not_start_after_its_launcher_gave_up(monkeypatch) -> None:
    # The server of this test stays in the "fork" that it returns from.
    monkeypatch.setattr(os, "fork", lambda: 0)
    with TemporaryDirectory() as folder, Listener(f"{folder}/socket") as listener:
        with Client(listener.address) as gave_up:
            gave_up.send("abandoned")
        with Client(listener.address) as waiting:
            waiting.send("awaited")
            assert serve(listener) == "awaited"


@pytest.mark.long
def test_a_run_server_has_one_thread() -> None:
    """Locks that another thread holds would stay locked in a fork."""
    code = (
        "import psutil; from lakehouse.orchestration.warm_runs.run_server import preload;"
        " preload(); print(psutil.Process().num_threads())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == b"1\n"
