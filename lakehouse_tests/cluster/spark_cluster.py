"""A standalone cluster: a master, and workers that see nothing of the driver's files."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse.settings import Settings
from lakehouse.spark import jvm
from lakehouse_tests.cli.commands import free_port
from lakehouse_tests.cluster.namespaces import isolated, require_namespaces
from lakehouse_tests.processes import ROOT, wait_for

_HOST = "127.0.0.1"
_START_SECONDS = 300
_ENDED = re.compile(r"Finished task|killed task|Exception in task")
_SMALL = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass(frozen=True)
class Part:
    """A process of the cluster, the leader of a group in which its executors are too."""

    process: "subprocess.Popen[bytes]"
    folder: Path
    """What it has on disk; of this machine's files it sees no others that a test made."""

    @property
    def said(self) -> str:
        """What it wrote to its log."""
        return _text(self.folder / "log")

    def executors_said(self, application: str = "*") -> str:
        """Return what its executors wrote to their logs, of one application or of all."""
        return "".join(map(_text, sorted(self.folder.glob(f"work/{application}/*/stderr"))))

    def kill(self) -> None:
        """End it and its executors, without a chance to clean up."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class SparkCluster:
    """A master that answers at `url`, and its workers."""

    url: str
    web_url: str
    folder: Path
    hidden: tuple[Path, ...]
    environment: dict[str, str]
    kept: tuple[Path, ...] = ()
    """What all workers see of what is hidden, as if it were on a shared disk."""
    workers: list[Part] = field(default_factory=list)

    @property
    def client_environment(self) -> dict[str, str]:
        """What a process is told whose Spark works on the cluster."""
        return {
            "LAKEHOUSE_SPARK_MASTER": self.url,
            "LAKEHOUSE_EXECUTORS": "1",
            "LAKEHOUSE_DRIVER_HOST": _HOST,
        }

    def state(self) -> dict[str, Any]:
        """Return what the master says of its workers and applications."""
        with urllib.request.urlopen(f"{self.web_url}/json/", timeout=30) as answer:
            state: dict[str, Any] = json.load(answer)
        return state

    def start_worker(self, *, cores: int = 1) -> Part:
        """Start one more worker; it is there after some seconds, see `wait_for_workers`."""
        folder = self.folder / f"worker-{len(self.workers)}"
        for name in ("work", "local"):
            (folder / name).mkdir(parents=True)
        # By one address Spark would take the disks of two workers for one.
        host = f"127.0.0.{len(self.workers) + 2}"
        worker = _spark_class("worker.Worker", "--host", host, "--webui-port", "0")
        given = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(folder / "work"))
        local = {"SPARK_LOCAL_DIRS": str(folder / "local"), "SPARK_LOCAL_IP": host}
        command = [*worker, *given, self.url]
        self.workers.append(self.start_isolated(command, folder, local, self.kept))
        return self.workers[-1]

    def start_isolated(
        self,
        command: Iterable[str],
        folder: Path,
        environment: Mapping[str, str],
        kept: Iterable[Path] = (),
    ) -> Part:
        """Start a process that sees its own folder and, of what is hidden, what is kept."""
        always = (Path(sys.prefix), Path(self.environment["JAVA_HOME"]), folder)
        alone = isolated(
            command, stage=self.folder / "stage", hidden=self.hidden, kept=(*always, *kept)
        )
        return _start(alone, folder, self.environment | environment)

    def working(self) -> list[Part]:
        """Return the workers that are there and are at work."""
        return [worker for worker in self._running() if self.is_at_work(worker)]

    def is_at_work(self, worker: Part) -> bool:
        """Whether a worker has a running task, or died with one."""
        applications = [application["id"] for application in self.state()["activeapps"]]
        return any(_is_at_work(worker.executors_said(name)) for name in applications)

    def wait_until_free(self) -> None:
        """Wait until no application is left, and all cores are free."""

        def is_free() -> bool:
            state = self.state()
            held = sum(worker["coresused"] for worker in self._alive())
            return not state["activeapps"] and not held

        wait_for(is_free, "the end of all applications", _START_SECONDS)

    def wait_for_workers(self, number: int) -> None:
        """Wait until as many workers are there, no more and no less."""
        wait_for(
            lambda: len(self._alive()) == number,
            f"a cluster of {number} workers",
            _START_SECONDS,
        )

    def _running(self) -> list[Part]:
        return [worker for worker in self.workers if worker.process.poll() is None]

    def _alive(self) -> list[Any]:
        return [worker for worker in self.state()["workers"] if worker["state"] == "ALIVE"]


@contextmanager
def running_cluster(
    settings: Settings,
    folder: Path,
    *,
    workers: int = 2,
    kept: Iterable[Path] = (),
    search_path: str | None = None,
) -> Iterator[SparkCluster]:
    """A cluster for as long as the block takes, which begins once all workers are there.

    Workers see the system, the virtual environment and Java. The clone, the cache of jars, the
    folders of tests, and what another worker keeps are empty to them.

    :param folder: below the temporary folder of the tests.
    :param kept: what workers see of what is hidden, as if it were on a shared disk.
    :param search_path: their `PATH`; that of this process unless it is said.
    """
    require_namespaces()
    (folder / "stage").mkdir(parents=True)
    hidden = (ROOT, settings.home, settings.cache_dir.expanduser(), folder)
    temporary = (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
    jvm.prepare(settings)
    environment = {**os.environ, "SPARK_LOCAL_IP": _HOST, **_SMALL}
    if search_path:
        environment["PATH"] = search_path
    port, web_port = free_port(), free_port()
    master = _spark_class("master.Master", "--host", _HOST, "--port", str(port))
    parts = [_start([*master, "--webui-port", str(web_port)], folder / "master", environment)]
    cluster = SparkCluster(
        f"spark://{_HOST}:{port}",
        f"http://{_HOST}:{web_port}",
        folder,
        (*hidden, *temporary),
        environment,
        tuple(kept),
    )
    try:
        wait_for(_answering(cluster, parts[0]), "the start of a master", _START_SECONDS)
        for _ in range(workers):
            cluster.start_worker()
        cluster.wait_for_workers(workers)
        yield cluster
    finally:
        for part in [*cluster.workers, *parts]:
            part.kill()


def on_account(settings: Settings) -> dict[str, str]:
    """Return what a process is told whose tables are in the tests' account."""
    return {
        "LAKEHOUSE_DEPLOYMENT": "aws",
        "LAKEHOUSE_BUCKET": str(settings.bucket),
        "AWS_ENDPOINT_URL": str(settings.endpoint_url),
    }


def spark_program(name: str) -> str:
    """Return where a program of the installed Spark is."""
    return str(Path(os.environ["SPARK_HOME"]) / "bin" / name)


def _answering(cluster: SparkCluster, master: Part) -> Callable[[], bool]:
    def answers() -> bool:
        assert master.process.poll() is None, master.said
        try:
            return bool(cluster.state())
        except (OSError, ValueError):
            # It listens before it has anything to say.
            return False

    return answers


def _spark_class(name: str, *arguments: str) -> list[str]:
    return [spark_program("spark-class"), f"org.apache.spark.deploy.{name}", *arguments]


def _start(command: list[str], folder: Path, environment: Mapping[str, str]) -> Part:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Part(process, folder)


def _is_at_work(executors_said: str) -> bool:
    return executors_said.count("Running task") > len(_ENDED.findall(executors_said))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
