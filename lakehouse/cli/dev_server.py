"""Dagster's webserver and daemon as one child of the command, which ends together with all that it started."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from lakehouse.errors import UsageError
from lakehouse.resources.dead_runs import fail_dead_runs
from lakehouse.resources.instance import open_instance
from lakehouse.settings import Settings

GRACE_SECONDS = 15.0


def serve(settings: Settings, host: str, port: int) -> int:
    """Run the UI in the foreground; return its exit code, once it and its children are gone.

    :raises UsageError: when something else listens on the port.
    :raises KeyboardInterrupt: when it was ended by Ctrl-C or by SIGTERM.
    """
    if _is_taken(host, port):
        raise UsageError(
            f"Something listens on {host}:{port} already; expected a free port.",
            next_step="Stop it, or give another one with --port.",
        )
    with open_instance(settings) as instance:
        fail_dead_runs(instance)
    # What the child starts finds its home wherever it works.
    os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
    os.environ["LAKEHOUSE_HOME"] = str(settings.home)
    click.echo(f"The Dagster UI opens at http://{host}:{port}, on {settings.home}. Ctrl-C ends it.", err=True)
    with _sigterm_as_interrupt():
        child = subprocess.Popen(_command(host, port), start_new_session=True)
        try:
            return child.wait()
        finally:
            _end(child)


def _command(host: str, port: int) -> list[str]:
    listen = ["--host", host, "--port", str(port)]
    return [sys.executable, "-m", "dagster", "dev", "--module-name", "lakehouse.definitions", *listen]


def _is_taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return probe.connect_ex((host, port)) == 0


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the child's whole group: Dagster first, so that it can end its own, then whatever is left of it."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
