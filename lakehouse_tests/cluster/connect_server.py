"""A Spark Connect server in front of a cluster, which sees no file of its clients."""

import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse.spark.connect_server import SERVER_CLASS, properties_text, server_configuration
from lakehouse.spark.session_configuration import session_configuration
from lakehouse.spark.spark_address import problem_of
from lakehouse_tests.cli.commands import free_port
from lakehouse_tests.cluster.spark_cluster import Part, SparkCluster, spark_program
from lakehouse_tests.processes import wait_for

_START_SECONDS = 300


@dataclass(frozen=True)
class ConnectServer:
    """A server, and the address that it answers at."""

    remote: str
    part: Part

    @property
    def client_environment(self) -> dict[str, str]:
        """What a process is told that is a client of it."""
        return {"SPARK_REMOTE": self.remote}


def printed_configuration(settings: Settings) -> dict[str, str]:
    """Return what `lakehouse connect-conf` prints for a server of this machine's jars."""
    return server_configuration(settings, str(jars.jar_dir(settings).expanduser()))


@contextmanager
def connect_server(
    cluster: SparkCluster,
    settings: Settings,
    configuration: Mapping[str, str] | None = None,
    kept: Iterable[Path] = (),
    port: int | None = None,
) -> Iterator[ConnectServer]:
    """A server for as long as the block takes, which begins once it answers.

    :param configuration: what it is given besides master and port; as `lakehouse dev` gives its
        server unless it is said.
    :param kept: what it sees of its clients' files, as if they were on a shared disk.
    :param port: where it answers; somewhere unless it is said.
    """
    port = port or free_port()
    folder = _folder(cluster, port)
    own = replace(
        settings, home=folder, spark_master=cluster.url, spark_memory="1g", spark_remote=None
    )
    if configuration is None:
        configuration = session_configuration(own, is_server=True)
    given = {
        **configuration,
        # Its own file for the log is in the clone, and the driver's temporary folder in the home.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.master": cluster.url,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # Its clients look for its page there.
        "spark.ui.port": str(free_port()),
    }
    file = folder / "server.conf"
    file.write_text(properties_text(given), encoding="utf-8")
    submit = [spark_program("spark-submit"), "--properties-file", str(file)]
    command = [*submit, "--class", SERVER_CLASS, "spark-internal"]
    with _running(cluster, settings, command, port, kept) as server:
        yield server


@contextmanager
def server_of_command(
    cluster: SparkCluster, settings: Settings, command: str, file: Path
) -> Iterator[ConnectServer]:
    """A server that somebody starts by a command, where its file lies in the working directory and
    `spark-submit` is on the PATH.

    :param command: has nothing that says where the server answers: it does at a free port.
    """
    port = free_port()
    folder = _folder(cluster, port)
    shutil.copy(file, folder)
    at = {"address": "127.0.0.1", "port": port}
    options = " ".join(
        f"--conf spark.connect.grpc.binding.{name}={value}" for name, value in at.items()
    )
    submit = shlex.quote(spark_program("spark-submit"))
    whole = command.replace("spark-submit", f"exec {submit} {options}", 1)
    words = ["bash", "-c", f"cd {shlex.quote(str(folder))}\n{whole}"]
    with _running(cluster, settings, words, port) as server:
        yield server


def _folder(cluster: SparkCluster, port: int) -> Path:
    folder = cluster.folder / f"connect-{port}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _running(
    cluster: SparkCluster,
    settings: Settings,
    command: list[str],
    port: int,
    kept: Iterable[Path] = (),
) -> Iterator[ConnectServer]:
    folder = _folder(cluster, port)
    part = cluster.start_isolated(
        command,
        folder,
        {"SPARK_LOCAL_DIRS": str(folder / "local"), "SPARK_DAEMON_MEMORY": "1g"},
        kept=[settings.cache_dir.expanduser(), *kept],
    )
    remote = f"sc://127.0.0.1:{port}"

    def answers() -> bool:
        assert part.process.poll() is None, part.said[-4000:]
        return not problem_of(remote)

    try:
        wait_for(answers, "the start of a Connect server", _START_SECONDS)
        yield ConnectServer(remote, part)
    finally:
        part.kill()
