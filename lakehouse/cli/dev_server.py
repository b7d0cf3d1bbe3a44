"""A warm Spark, and Dagster's webserver and daemon, as children of the command that end together with it."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from filelock import FileLock, Timeout

from lakehouse.cli.children import Children
from lakehouse.cli.progress import Progress
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.resources import spark_server
from lakehouse.resources.dead_runs import fail_dead_runs
from lakehouse.resources.dev_note import leave_note, remove_note
from lakehouse.resources.instance import open_instance
from lakehouse.settings import Settings

_TRIED_PORTS = 20


def serve(
    settings: Settings, host: str, port: int, progress: Progress, *, is_fixed: bool, tells_all: bool = False
) -> None:
    """Run the UI in the foreground until it is stopped, or one of its processes dies.

    :param is_fixed: whether that port was asked for; else the next free one is taken.
    :param tells_all: whether Dagster's whole log is shown, and not only what happened.
    :raises UsageError: when the port is taken, or this home is open already.
    :raises LakehouseError: when one of the processes ended by itself.
    :raises KeyboardInterrupt: when it was ended by Ctrl-C or by SIGTERM.
    """
    with _alone(settings), _sigterm_as_interrupt(), Children() as children:
        found = _free_port(host, port, is_fixed=is_fixed)
        with open_instance(settings) as instance:
            fail_dead_runs(instance)
        server = None if settings.spark_remote else _warm_spark(settings, children, progress)
        # What the children start finds its home wherever it works.
        os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
        os.environ["LAKEHOUSE_HOME"] = str(settings.home)
        # Links in alerts lead to this UI, unless people reach it by another address.
        url = settings.ui_url or f"http://{host}:{found}"
        os.environ["LAKEHOUSE_UI_URL"] = url
        try:
            leave_note(settings, url)
            children.start("Dagster", _dagster(host, found, tells_all=tells_all))
            click.echo(f"The Dagster UI opens at http://{host}:{found}, on {settings.home}. Ctrl-C ends it.", err=True)
            name, code = children.wait()
        finally:
            remove_note(settings)
            if server:
                spark_server.forget(settings, server)
    raise LakehouseError(
        f"{name} ended by itself (exit status {code}), and all else with it.",
        next_step=f"Its last words are above, or in {settings.home / 'logs'}; `lakehouse dev` starts it again.",
    )


def _warm_spark(settings: Settings, children: Children, progress: Progress) -> spark_server.SparkServer:
    with progress("Starting a Spark server"):
        child, server = spark_server.start(settings)
        children.add("The Spark server", child)
        spark_server.wait_for(settings, child, server)
    return server


def _dagster(host: str, port: int, *, tells_all: bool) -> list[str]:
    listen = ["--host", host, "--port", str(port)]
    program = ["dagster", "dev"] if tells_all else ["lakehouse.cli.dagster_dev"]
    return [sys.executable, "-m", *program, "--module-name", "lakehouse.definitions", *listen]


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    settings.make_home()
    lock = FileLock(settings.home / "dev.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UsageError(
            f"`lakehouse dev` runs already on {settings.home}; expected one for each home.",
            next_step="Use that one, stop it with Ctrl-C, or set LAKEHOUSE_HOME to another folder.",
        ) from None
    try:
        yield
    finally:
        lock.release()


def _free_port(host: str, port: int, *, is_fixed: bool) -> int:
    if not _is_taken(host, port):
        return port
    if not is_fixed:
        for other in range(port + 1, port + _TRIED_PORTS):
            if not _is_taken(host, other):
                return other
    raise UsageError(
        f"Something listens on {host}:{port} already; expected a free port.",
        next_step="Stop it, or give another one with --port.",
    )


def _is_taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            return probe.connect_ex((host, port)) == 0
        except socket.gaierror as error:
            raise UsageError(
                f"--host is {host!r}, which this machine cannot look up; expected a name or an address of its own.",
                next_step="Leave it out to listen on this machine alone.",
            ) from error


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
