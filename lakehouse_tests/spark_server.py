"""A Spark Connect server of this machine, for the time of a test."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lakehouse.settings import Settings
from lakehouse.spark.connect_server import SERVER_CLASS
from lakehouse.spark.jvm import prepare
from lakehouse.spark.spark_address import problem_of
from lakehouse.spark.spark_folders import prepare_temporary_folder
from lakehouse.spark.spark_server import local_configuration
from lakehouse_tests.cli.commands import free_port


@contextmanager
def running_server(settings: Settings) -> Iterator[str]:
    """A server on a free port, for as long as the block takes, which begins once it answers."""
    port = free_port()
    prepare(settings)
    prepare_temporary_folder(settings, is_server=True)
    given = local_configuration(
        replace(settings, spark_memory="1g", spark_master="local[2]"), port
    )
    options = [part for item in given.items() for part in ("--conf", "=".join(item))]
    server = ["--class", SERVER_CLASS, *options, "spark-internal"]
    submit = Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit"
    process = subprocess.Popen(
        [submit, *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    remote = f"sc://127.0.0.1:{port}"
    try:
        while problem_of(remote):
            assert process.poll() is None, "the server died"
            time.sleep(0.2)
        yield remote
    finally:
        process.kill()
        process.wait()
