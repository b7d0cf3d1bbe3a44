"""A process that has imported what runs need, and executes each run in a fork of itself.

Run as `python -m lakehouse.orchestration.warm_runs.run_server DAGSTER_HOME SOCKET`. It imports no
code of a project, so that each run executes the current code. It has one thread: locks that
another thread holds would stay locked in a fork.
"""

import gc
import io
import os
import runpy
import signal
import sys
from contextlib import redirect_stdout, suppress
from importlib import import_module
from multiprocessing.connection import Listener
from pathlib import Path

import dagster as dg

from lakehouse.orchestration.warm_runs.run_launcher import address_file

_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Environment variables that keep libraries from starting threads when they are imported."""
_NEEDED = (
    "fsspec.implementations.local",
    "grpc._channel",
    "pandas",
    "pyarrow.acero",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pyiceberg.avro.decoder_fast",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
    "pyspark.sql.connect.functions",
    "pyspark.sql.connect.session",
    "upath.implementations.local",
    "dagster_pyspark",
    "lakehouse.project",
    "lakehouse.ingestion.feed_asset",
    "lakehouse.orchestration.iceberg_asset",
    "lakehouse.orchestration.partitions.partition_bounds",
    "lakehouse.iceberg.write.write_audit_publish",
    "lakehouse.spark.spark_session",
)
"""Modules that nearly every run imports."""


def preload() -> None:
    """Import what runs need."""
    for name, value in _NO_THREADS.items():
        os.environ[name] = value
    for name in _NEEDED:
        # A library that is not installed is used by no run.
        with suppress(ImportError):
            import_module(name)
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        _run_dagster(["api", "execute_run", "--help"])
    with dg.DagsterInstance.ephemeral() as instance:
        quiet = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
        dg.materialize([_nothing], instance=instance, run_config=quiet)
    for name in _NO_THREADS:
        del os.environ[name]
    # Objects that the collector does not visit stay in memory that forks share.
    gc.collect()
    gc.freeze()


@dg.asset
def _nothing() -> None:
    """Load the modules that Dagster imports to execute a run."""


def serve(listener: Listener) -> str:
    """Fork for each run that a launcher sends, until SIGINT.

    :returns: in a fork, the arguments of `dagster api execute_run`.
    """
    while True:
        # A launcher may have exited before it sent anything.
        with listener.accept() as connection, suppress(EOFError, OSError):
            arguments: str = connection.recv()
            if connection.poll():
                # A launcher sends no more: it gave up, and started the run itself.
                continue
            pid = os.fork()
            if not pid:
                return arguments
            connection.send(pid)


def main(dagster_home: str, address: str) -> None:
    """Serve until SIGINT; in a fork, execute a run."""
    preload()
    Path(address).unlink(missing_ok=True)
    listener = Listener(address, family="AF_UNIX")
    address_file(Path(dagster_home)).write_text(address)
    # The kernel removes the process of a run that exits.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        arguments = serve(listener)
    except KeyboardInterrupt:
        listener.close()
        _wait_for_runs()
        return
    # In a fork, this leaves the socket's file to the server.
    listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if numpy := sys.modules.get("numpy"):
        # Otherwise all runs would draw the same numbers.
        numpy.random.seed()
    _run_dagster(["api", "execute_run", arguments])


def _wait_for_runs() -> None:
    # While SIGCHLD is ignored, this returns when the last child has exited.
    with suppress(ChildProcessError, KeyboardInterrupt):
        while True:
            os.wait()


def _run_dagster(arguments: list[str]) -> None:
    sys.argv = ["dagster", *arguments]
    runpy.run_module("dagster", run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
