"""Dagster's processes next to `lakehouse dev`."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lakehouse.cli.dev_processes import dagster_processes
from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.dagster_processes import DagsterProcesses
from lakehouse.orchestration.incident_reports import read_reports
from lakehouse.settings import Settings
from lakehouse_tests.processes import wait_for

pytestmark = pytest.mark.unit

NAME = "Dagster's code server"
PROXY = """
import os, socket, subprocess, sys, time
path, start = sys.argv[1:]
if start == "exits":
    sys.exit(1)
child = subprocess.Popen(["sleep", "60"])
if start == "is killed":
    child.kill()
    child.wait()
if start != "loads":
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
time.sleep(60)
"""
"""Like the code server, it listens after its child has loaded the code or was killed."""


class Dev:
    """The code server of `lakehouse dev`, and the time."""

    def __init__(
        self, settings: Settings, folder: Path, children: Children, patch: pytest.MonkeyPatch
    ) -> None:
        self.settings, self.children, self.socket = settings, children, folder / "code"
        self.dagster = DagsterProcesses(settings, children, folder, is_verbose=False)
        self.how, self.now, self.starts = "loaded", time.monotonic(), list[float]()
        patch.setattr(self.dagster, "_start_code_server", self.start)
        patch.setattr(dagster_processes.time, "monotonic", lambda: self.now)

    def start(self) -> None:
        self.starts.append(self.now)
        command = [sys.executable, "-c", PROXY, str(self.socket), self.how]
        self.children.start(NAME, command)

    def check(self) -> None:
        self.now += dagster_processes._RESTART_SECONDS
        self.dagster.restart_dead()

    def has_listener(self) -> bool:
        return dagster_processes._accepts(self.socket)

    @property
    def reports(self) -> list[str]:
        notes = read_reports(self.settings)
        return ["resolved" if note.resolved else note.report.key for note in notes]


@pytest.fixture
def dev(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dev]:
    with Children() as children, monkeypatch.context() as patch:
        yield Dev(settings, tmp_path, children, patch)


def test_a_code_server_whose_loading_process_dies_is_resolved_after_it_has_loaded_again(
    dev: Dev,
) -> None:
    dev.start()
    wait_for(dev.has_listener, "the code server")
    dev.check()
    assert dev.reports == []
    first = psutil.Process(dev.children.pid(NAME))
    (child,) = first.children()
    child.kill()
    wait_for(lambda: child.status() == psutil.STATUS_ZOMBIE, "its end")
    dev.how = "loads"
    while len(dev.starts) < 2:
        dev.check()
    dev.check()
    assert dev.reports == ["code server"]

    dev.children.end(NAME)
    dev.how = "loaded"
    dev.start()
    wait_for(dev.has_listener, "the code server")
    dev.check()
    assert dev.reports == ["code server", "resolved"]


def test_a_code_server_that_is_killed_while_it_first_loads_is_an_incident(dev: Dev) -> None:
    dev.how = "is killed"
    dev.start()
    wait_for(dev.has_listener, "the code server")
    dev.check()
    assert dev.reports == ["code server"]


def test_a_code_server_that_dies_at_each_start_is_one_incident_and_starts_after_pauses(
    dev: Dev,
) -> None:
    dev.how = "exits"
    dev.start()
    while len(dev.starts) < 5:
        wait_for(lambda: dev.children.ended(NAME) is not None or _is_paused(dev), "its end")
        dev.check()
    pauses = [later - at for at, later in zip(dev.starts, dev.starts[1:], strict=False)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 4 * pauses[0]
    assert dev.reports == ["code server"]


def _is_paused(dev: Dev) -> bool:
    return NAME not in dev.children._running
