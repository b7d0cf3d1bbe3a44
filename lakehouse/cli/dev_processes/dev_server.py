"""A warm Spark, and Dagster's webserver and daemon, as children of the command that end
together with it.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.dev_ui import NAME, Address, ended, free_port, open_ui
from lakehouse.cli.dev_processes.warm_spark import WarmSpark
from lakehouse.cli.output.progress import Progress
from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.spark_line import is_spark_3
from lakehouse.orchestration.dead_runs import fail_dead_runs
from lakehouse.orchestration.instance import open_instance
from lakehouse.runtime.dev_address_file import remove_note
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import file_lock

_PAUSE_SECONDS = 0.3


def serve(
    settings: Settings,
    host: str,
    port: int,
    progress: Progress,
    *,
    is_fixed: bool,
    tells_all: bool = False,
) -> None:
    """Run the UI in the foreground until it is stopped, or Dagster ends; a Spark that dies is
    started again.

    :param is_fixed: whether that port was asked for; else the next free one is taken.
    :param tells_all: whether Dagster's whole log is shown, and not only what happened.
    :raises UsageError: when the port is taken, or this home is open already.
    :raises LakehouseError: when Dagster ended by itself.
    :raises KeyboardInterrupt: when it was ended by Ctrl-C or by SIGTERM.
    """
    with _alone(settings), _signals(), Children() as children:
        free = free_port(host, port, is_fixed=is_fixed)
        with open_instance(settings) as instance:
            fail_dead_runs(instance)
        # What the children start finds its home wherever it works.
        os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
        os.environ["LAKEHOUSE_HOME"] = str(settings.home)
        os.environ["LAKEHOUSE_DEFINITIONS"] = settings.definitions
        spark = WarmSpark(settings, children, _say)
        try:
            # PySpark 3.5 brings no server: there each run starts a Spark of its own.
            if not settings.spark_remote and not is_spark_3():
                spark.start(progress)
            url = open_ui(
                settings,
                children,
                Address(host, free, is_fixed),
                lambda at: _dagster(settings, host, at, tells_all=tells_all),
                spark.look,
            )
            click.echo(
                f"The Dagster UI is open at {url}, on {settings.home}. Ctrl-C ends it.",
                err=True,
            )
            raise ended(settings, _wait(children, spark))
        finally:
            remove_note(settings)
            spark.close()


def _wait(children: Children, spark: WarmSpark) -> int:
    """Keep Spark going until Dagster ends, and return its exit status."""
    while (code := children.ended(NAME)) is None:
        spark.look()
        time.sleep(_PAUSE_SECONDS)
    return code


def _dagster(settings: Settings, host: str, port: int, *, tells_all: bool) -> list[str]:
    listen = ["--host", host, "--port", str(port)]
    program = "dagster_services" if tells_all else "dagster_dev"
    loaded = ["--module-name", settings.definitions]
    if settings.project_root:
        loaded += ["--working-directory", str(settings.project_root)]
    return [sys.executable, "-m", f"lakehouse.cli.dev_processes.{program}", *loaded, *listen]


def _say(text: str) -> None:
    click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {text}", err=True)


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
    """End at SIGTERM as at Ctrl-C; and where a script made this ignore Ctrl-C, let what is
    started not ignore it.

    A program keeps what its parent ignores, and Dagster and Spark are ended by that signal. One
    with a handler here is as it should be there.
    """

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
