"""Warms up the Spark of `lakehouse dev` by writing small tables in a temporary home.

Run as `python -m lakehouse.cli.dev_processes.warm_up`.
"""

import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from importlib import import_module

from lakehouse.settings import Settings
from lakehouse.spark.jvm_warm_up import write_warm_up_tables
from lakehouse.spark.spark_folders import temporary_folder
from lakehouse.spark.spark_server import START_SECONDS, SparkServer, find
from lakehouse.storage.atomic_files import keep_private

_NICE = 10
"""Others go first."""

_NEEDED = ("pandas", "pyspark.sql.connect.session", "pyiceberg.catalog.sql")
"""What takes seconds to import, in which the server starts."""
_PAUSE_SECONDS = 0.2


def main() -> None:
    """Write the tables once the server answers, unless it never does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.nice(_NICE)
    keep_private()
    settings = Settings.from_env()
    for needed in _NEEDED:
        import_module(needed)
    server = _server(settings)
    if server is None:
        return
    # Named as that of a Spark of this process: the next start of one removes what a kill left.
    scratch = temporary_folder(settings)
    try:
        write_warm_up_tables(
            replace(settings, home=scratch, deployment="local", spark_remote=server.remote)
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _server(settings: Settings) -> SparkServer | None:
    until = time.monotonic() + START_SECONDS
    while (server := find(settings)) is None and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
    return server


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
