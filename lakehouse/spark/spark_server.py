"""The warm Spark Connect server of this machine, on the loopback address with a token."""

import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lakehouse.errors import SetupError
from lakehouse.settings import Settings
from lakehouse.spark import jars, jvm
from lakehouse.spark.connect_server import SERVER_CLASS, properties_text
from lakehouse.spark.jvm import GIVES_BACK, KEEPS_LITTLE, LATER_SECOND_COMPILER
from lakehouse.spark.jvm_class_archive import archive_options
from lakehouse.spark.processes import Process
from lakehouse.spark.session_configuration import session_configuration, with_java_options
from lakehouse.spark.spark_address import require_master
from lakehouse.spark.spark_folders import (
    last_words,
    log_file,
    log_size,
    open_log,
    prepare_temporary_folder,
    temporary_folder,
)
from lakehouse.storage.atomic_files import replace_bytes, replace_text

_PYTHON_PATH = "PYTHONPATH"
_PAUSE_SECONDS = 0.2
START_SECONDS = 120.0


@dataclass(frozen=True)
class SparkServer:
    """A server on this machine: its port, token and process."""

    port: int
    token: str
    process: Process
    log_at: int = 0
    """Position of its first line in the log."""
    deployment: str = ""
    master: str = ""
    """The settings it was started for; an empty value fits all."""

    @property
    def remote(self) -> str:
        """The address by host name: clients send no token to an IP address without TLS."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    def is_for(self, settings: Settings) -> bool:
        """Return whether the server has the deployment and the master of settings."""
        if self.deployment not in ("", settings.deployment):
            return False
        asked, default = settings.spark_master, Settings.spark_master
        are_local = asked.startswith("local") and self.master.startswith("local")
        return are_local or asked == default or self.master in ("", asked)

    @property
    def answers(self) -> bool:
        """Whether its port accepts connections."""
        with closing(socket.socket()) as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def with_server(settings: Settings) -> Settings:
    """Return settings with a fitting warm server as SPARK_REMOTE; a process keeps its choice."""
    if settings.spark_remote:
        return settings
    if settings not in _chosen:
        server = find(settings)
        is_used = server is not None and server.is_for(settings)
        _chosen[settings] = server.remote if server and is_used else None
    return replace(settings, spark_remote=_chosen[settings])


_chosen: dict[Settings, str | None] = {}


def find(settings: Settings) -> SparkServer | None:
    """Return the running server of this home, or None."""
    try:
        note = json.loads(_note(settings).read_text(encoding="utf-8"))
        server = SparkServer(**{**note, "process": Process(**note["process"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return server if server.process.is_alive and server.answers else None


def start(
    settings: Settings, like: SparkServer | None = None
) -> tuple["subprocess.Popen[bytes]", SparkServer]:
    """Start a server; `like` is the previous one, whose token and port it reuses."""
    import pyspark

    require_master(settings.spark_master)
    jars.require(settings)
    chosen = jvm.prepare(settings)
    prepare_temporary_folder(settings, is_server=True)
    port = like.port if like and not like.answers else _free_port()
    token = like.token if like else secrets.token_urlsafe(24)
    own = replace(settings, spark_remote=None)
    configuration = local_configuration(own, port)
    java_options = [*archive_options(settings, chosen), *LATER_SECOND_COMPILER, *GIVES_BACK]
    configuration = with_java_options(configuration, java_options)
    # Arguments are visible to all users of the machine, and configuration can contain secrets.
    properties = _properties_file(settings)
    replace_bytes(properties, properties_text(configuration).encode(), mode=0o600)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    started_at = log_size(settings)
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
    with open_log(settings) as output, _finding_modules(settings):
        child = subprocess.Popen(
            [
                str(submit),
                "--properties-file",
                str(properties),
                "--load-spark-defaults",
                "--class",
                SERVER_CLASS,
                "spark-internal",
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process = Process.at_time(child.pid, time.time())
    return child, SparkServer(
        port, token, process, started_at, settings.deployment, settings.spark_master
    )


@contextmanager
def _finding_modules(settings: Settings) -> Iterator[None]:
    """Set PYTHONPATH for the server's Python workers; servers ignore `spark.executorEnv`."""
    root, given = settings.project_root, settings.cluster.python_path
    if root is None:
        yield
        return
    os.environ[_PYTHON_PATH] = os.pathsep.join(filter(None, (str(root), given)))
    try:
        yield
    finally:
        del os.environ[_PYTHON_PATH]
        if given:
            os.environ[_PYTHON_PATH] = given


def local_configuration(settings: Settings, port: int) -> dict[str, str]:
    """Return the configuration of a server on this machine."""
    # On a cluster it has a UI, which shows finished jobs.
    little = {} if settings.is_on_cluster else KEEPS_LITTLE
    return {
        **little,
        **session_configuration(settings, is_server=True),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }


def wait_for(settings: Settings, child: "subprocess.Popen[bytes]", server: SparkServer) -> None:
    """Wait until a server answers, and publish it; raises SetupError."""
    until = time.monotonic() + START_SECONDS
    while not server.answers:
        if child.poll() is not None or time.monotonic() > until:
            raise SetupError(
                f"The Spark server did not start: {last_words(settings, server.log_at)}",
                next_step=(
                    "`lakehouse doctor` shows which Java is used; all that it said is in"
                    f" {log_file(settings)}."
                ),
            )
        time.sleep(_PAUSE_SECONDS)
    publish(settings, server)


def publish(settings: Settings, server: SparkServer) -> None:
    """Publish a server that answers to the processes of this home."""
    _properties_file(settings).unlink(missing_ok=True)
    replace_text(_note(settings), json.dumps(asdict(server)), mode=0o600)


def forget(settings: Settings, server: SparkServer) -> None:
    """Remove the note and the configuration of a stopped server."""
    _properties_file(settings).unlink(missing_ok=True)
    published = find(settings)
    if published is None or published == server:
        _note(settings).unlink(missing_ok=True)


def _properties_file(settings: Settings) -> Path:
    """Return the file with the server's configuration, which is removed after the start."""
    return temporary_folder(settings, is_server=True) / "spark.properties"


def _note(settings: Settings) -> Path:
    return settings.home / "spark-server.json"


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port: int = probe.getsockname()[1]
        return port
