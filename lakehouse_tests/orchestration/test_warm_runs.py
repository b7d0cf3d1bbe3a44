"""Runs that begin as copies of a server, on a project of one job, without Spark."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.code_pointer import CodePointer
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.errors import DagsterInvariantViolationError
from dagster._core.launcher import LaunchRunContext, WorkerStatus

from lakehouse.orchestration.dagster_internals import _job_origin
from lakehouse.orchestration.instance import dagster_home
from lakehouse.orchestration.warm_runs.connection import address_of, connect, receive, send
from lakehouse.orchestration.warm_runs.dagster_runs import request_of_run
from lakehouse.orchestration.warm_runs.loaded_code import LoadedCode
from lakehouse.orchestration.warm_runs.run_launcher import WarmRunLauncher, worker_of
from lakehouse.orchestration.warm_runs.server_process import run_server
from lakehouse.settings import Settings
from lakehouse_tests.processes import wait_for

pytestmark = [pytest.mark.unit, pytest.mark.timeout(120)]

SECONDS = 60
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
    (FOLDER / context.run_id).write_text(PACKED + os.environ["WARM_SHOP"] + threads)
    while (FOLDER / "closed").exists():
        time.sleep(0.05)


@dg.job
def deliver():
    pack()


defs = dg.Definitions(jobs=[deliver])
"""


class Shop:
    """A project on an instance, whose runs a server begins."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance
        self.launcher = WarmRunLauncher()
        self.launcher.register_instance(self.instance)

    def write(self, packed: str) -> None:
        (self.folder / f"{MODULE}.py").write_text(CODE.format(packed=packed), encoding="utf-8")

    def asked_for(self) -> dg.DagsterRun:
        """Make a run, as the daemon hands it to a launcher."""
        pointer = CodePointer.from_module(MODULE, "defs", str(self.folder))
        job = ReconstructableRepository(pointer).get_reconstructable_job("deliver")
        return self.instance.create_run_for_job(
            job.get_definition(),
            status=dg.DagsterRunStatus.STARTING,
            remote_job_origin=_job_origin(MODULE, "deliver"),
            job_code_origin=job.get_python_origin(),
        )

    def launch(self) -> str:
        """Launch a run, and return its id.

        :raises DagsterInvariantViolationError: where Dagster's own launcher would have to, which
            has no code server here.
        """
        run = self.asked_for()
        self.launcher.launch_run(LaunchRunContext(run, workspace=None))
        return run.run_id

    def launch_once_warm(self) -> str:
        return wait_for(lambda: attempt(self.launch), "a server of runs", SECONDS)

    def packed(self, run_id: str) -> str:
        file = self.folder / run_id
        return file.read_text() if file.exists() else ""

    def run(self, run_id: str) -> dg.DagsterRun:
        found = self.instance.get_run_by_id(run_id)
        assert found is not None
        return found

    def wait_for(self, run_id: str, status: str) -> None:
        wait_for(lambda: self.run(run_id).status.value == status, status, SECONDS)

    def messages(self, run_id: str) -> str:
        return "\n".join(entry.message for entry in self.instance.all_logs(run_id))

    def server(self) -> psutil.Process:
        (found,) = (
            process
            for process in psutil.Process().children()
            if "lakehouse.orchestration.warm_runs.run_server" in process.cmdline()
        )
        return found


def attempt(function: Callable[[], str]) -> str | None:
    try:
        return function()
    except DagsterInvariantViolationError as error:
        assert "requires a workspace" in str(error)
        return None


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    home = tmp_path_factory.mktemp("home")
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        shop = Shop(folder, instance)
        shop.write("peas")
        (folder / ".env").write_text("WARM_SHOP=!")
        with contextlib.chdir(folder), run_server(home, MODULE, str(folder)):
            yield shop
    sys.modules.pop(MODULE, None)


@pytest.fixture
def shop(served: Shop) -> Iterator[Shop]:
    yield served
    (served.folder / "closed").unlink(missing_ok=True)


@pytest.mark.long
def test_a_run_is_carried_out_by_a_copy_of_the_server(shop: Shop) -> None:
    run_id = shop.launch_once_warm()
    shop.wait_for(run_id, "SUCCESS")
    worker = worker_of(shop.run(run_id))
    assert worker is not None
    assert shop.packed(run_id) == "peas!"
    assert f"Started process for run (pid: {worker.pid})." in shop.messages(run_id)
    assert f"Process for run exited (pid: {worker.pid})." in shop.messages(run_id)
    assert worker.pid != shop.server().pid


@pytest.mark.long
def test_a_run_is_interrupted(shop: Shop) -> None:
    (shop.folder / "closed").touch()
    run_id = shop.launch_once_warm()
    wait_for(lambda: shop.packed(run_id), "the run", SECONDS)
    assert shop.launcher.terminate(run_id)
    shop.wait_for(run_id, "CANCELED")
    assert not shop.launcher.terminate(run_id)


@pytest.mark.long
def test_a_run_that_is_killed_has_failed_at_once(shop: Shop) -> None:
    (shop.folder / "closed").touch()
    run_id = shop.launch_once_warm()
    wait_for(lambda: shop.packed(run_id), "the run", SECONDS)
    worker = worker_of(shop.run(run_id))
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)
    shop.wait_for(run_id, "FAILURE")
    assert "was terminated by signal 9 (SIGKILL)" in shop.messages(run_id)


@pytest.mark.long
def test_a_run_does_not_begin_where_its_launcher_gave_up(shop: Shop) -> None:
    shop.wait_for(shop.launch_once_warm(), "SUCCESS")
    run = shop.asked_for()
    connection = connect(address_of(Path(shop.instance.root_directory)), SECONDS)
    assert connection is not None
    with connection:
        assert send(connection, request_of_run(shop.instance, run))
        assert receive(connection)
    wait_for(lambda: not shop.server().children(), "the end of the copy", SECONDS)
    assert shop.run(run.run_id).status is dg.DagsterRunStatus.STARTING
    assert not shop.packed(run.run_id)


@pytest.mark.long
def test_where_the_server_is_killed_runs_go_on_and_are_looked_after(shop: Shop) -> None:
    (shop.folder / "closed").touch()
    run_id = shop.launch_once_warm()
    wait_for(lambda: shop.packed(run_id), "the run", SECONDS)
    shop.server().kill()
    wait_for(lambda: attempt(shop.launch) is None, "that none answers", SECONDS)

    health = shop.launcher.check_run_worker_health
    assert health(shop.run(run_id)).status is WorkerStatus.RUNNING
    worker = worker_of(shop.run(run_id))
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)
    wait_for(lambda: not worker.is_alive, "the end of the run", SECONDS)
    assert health(shop.run(run_id)).status is WorkerStatus.FAILED
    (shop.folder / "closed").unlink()
    shop.wait_for(shop.launch_once_warm(), "SUCCESS")


@pytest.mark.long
def test_a_run_is_never_of_code_that_is_not_in_the_files_any_more(shop: Shop) -> None:
    shop.wait_for(shop.launch_once_warm(), "SUCCESS")
    shop.write("beans")
    assert attempt(shop.launch) is None
    run_id = shop.launch_once_warm()
    shop.wait_for(run_id, "SUCCESS")
    assert shop.packed(run_id) == "beans!"


@pytest.mark.long
def test_a_run_of_other_code_is_launched_as_dagster_does(shop: Shop) -> None:
    shop.launch_once_warm()
    run = shop.asked_for()
    assert run.job_code_origin is not None
    origin = run.job_code_origin
    elsewhere = origin.repository_origin._replace(executable_path="/another/python")
    other = run._replace(job_code_origin=origin._replace(repository_origin=elsewhere))
    with pytest.raises(DagsterInvariantViolationError, match="requires a workspace"):
        shop.launcher.launch_run(LaunchRunContext(other, workspace=None))


@pytest.mark.long
def test_a_run_that_repeats_another_has_no_worker_by_its_tags(shop: Shop) -> None:
    run_id = shop.launch_once_warm()
    shop.wait_for(run_id, "SUCCESS")
    repeated = shop.run(run_id)._replace(run_id="another")
    assert worker_of(repeated) is None


def test_a_new_home_has_the_launcher(settings: Settings) -> None:
    with dg.DagsterInstance.from_config(str(dagster_home(settings))) as instance:
        assert isinstance(instance.run_launcher, WarmRunLauncher)


@pytest.mark.long
def test_a_query_beside_the_code_is_code(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "warm_garden"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "beds.sql").write_text("SELECT 1")
    os.utime(package / "beds.sql", (1, 1))
    monkeypatch.syspath_prepend(tmp_path)
    before = time.time() - 1
    import warm_garden  # type: ignore[import-not-found]  # noqa: F401

    assert not LoadedCode.since(before).is_current, "a file may have changed as it was read"
    code = LoadedCode.since(time.time() + 1)
    assert code.is_current
    (package / "beds.sql").write_text("SELECT 2")
    assert not code.is_current
    del sys.modules["warm_garden"]


@pytest.mark.long
def test_code_that_starts_threads_is_not_copied(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "warm_threads.py").write_text(
        "import threading, time\nimport dagster as dg\n"
        "threading.Thread(target=time.sleep, args=[60], daemon=True).start()\n"
        "defs = dg.Definitions()\n"
    )
    with run_server(tmp_path, "warm_threads", str(tmp_path)):
        said = wait_for(lambda: capfd.readouterr().err, "what it says", SECONDS)
    assert "Importing warm_threads started 1 threads" in said
