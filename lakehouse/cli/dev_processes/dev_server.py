"""A warm Spark and Dagster's processes, as children of the command that end with it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.dagster_processes import (
    DAEMON,
    WEBSERVER,
    DagsterProcesses,
    check_running,
    wait_for,
)
from lakehouse.cli.dev_processes.restarts import say
from lakehouse.cli.dev_processes.ui_address import UIAddress, leave_note, listen, remove_note
from lakehouse.cli.dev_processes.warm_spark import WarmSpark
from lakehouse.cli.output.progress import Progress
from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import file_lock

_CHECK_SECONDS = 0.5


def serve(
    settings: Settings,
    address: UIAddress,
    progress: Progress,
    *,
    is_fixed: bool,
    is_verbose: bool = False,
) -> None:
    """Run the UI until it is stopped; restart Spark, the code server and the run server.

    :param is_fixed: whether only this port will do; otherwise the next free one is used.
    :param is_verbose: whether Dagster's full log is printed, and not only warnings and errors.
    :raises UsageError: if the port is taken, or another `dev` runs on this home.
    :raises LakehouseError: if Dagster's daemon or webserver exits.
    :raises KeyboardInterrupt: at Ctrl-C and SIGTERM.
    """
    with (
        _alone(settings),
        _signals(),
        TemporaryDirectory(prefix="lakehouse-dev-") as folder,
        Children() as children,
    ):
        listener, address = listen(address.host, address.port, is_fixed=is_fixed)
        with open_instance(settings) as instance:
            fail_orphaned_runs(instance)
        url = settings.ui_url or address.url
        # Children find the home in any working directory, and alerts link to this UI.
        os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
        os.environ["LAKEHOUSE_HOME"] = str(settings.home)
        os.environ["LAKEHOUSE_DEFINITIONS"] = settings.definitions
        os.environ["LAKEHOUSE_UI_URL"] = url
        spark = WarmSpark(settings, children, say)
        dagster = DagsterProcesses(settings, children, Path(folder), is_verbose=is_verbose)
        try:
            dagster.start_code()
            # PySpark 3.5 has no Connect server: there each run starts a Spark of its own.
            if not settings.spark_remote and not is_spark_3():
                spark.start(progress)
            with listener:
                dagster.start_services(listener.fileno(), address)
            wait_for(WEBSERVER, children, lambda: address.is_served, DAEMON, WEBSERVER)
            leave_note(settings, url)
            click.echo(
                f"The Dagster UI is open at {address.url}, on {settings.home}. Ctrl-C ends it.",
                err=True,
            )
            while True:
                check_running(children, DAEMON, WEBSERVER)
                spark.look()
                dagster.restart_dead()
                time.sleep(_CHECK_SECONDS)
        finally:
            remove_note(settings)
            dagster.close()
            spark.close()


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    settings.make_home()
    busy = UsageError(
        f"`lakehouse dev` runs already on {settings.home}; expected one for each home.",
        next_step="Use that one, stop it with Ctrl-C, or set LAKEHOUSE_HOME to another folder.",
    )
    with file_lock(settings.home / "dev.lock", 0, busy):
        yield


@contextmanager
def _signals() -> Iterator[None]:
    """End at SIGTERM as at Ctrl-C; children do not inherit an ignored Ctrl-C, which ends them."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
