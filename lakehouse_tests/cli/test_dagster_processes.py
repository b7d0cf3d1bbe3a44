"""Dagster's processes next to `lakehouse dev`."""

import sys
from pathlib import Path

import psutil
import pytest

from lakehouse.cli.dev_processes import dev_server
from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.dev_server import DagsterProcesses
from lakehouse.orchestration.incident_reports import read_reports
from lakehouse.settings import Settings
from lakehouse_tests.processes import wait_for

pytestmark = pytest.mark.unit

NAME = "Dagster's code server"
PROXY = "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"
"""A process that, like the code server, has a child that loads the code."""


def test_a_code_server_is_restarted_when_the_process_that_loads_the_code_dies(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev_server, "_RESTART_SECONDS", 0)
    with Children() as children:
        dagster = DagsterProcesses(settings, children, tmp_path, is_verbose=False)

        def start() -> None:
            children.start(NAME, [sys.executable, "-c", PROXY])

        monkeypatch.setattr(dagster, "_start_code_server", start)
        start()
        first = psutil.Process(children.pid(NAME))
        (loading,) = wait_for(first.children, "the child")
        dagster.restart_dead()
        assert children.pid(NAME) == first.pid
        loading.kill()

        def is_restarted() -> bool:
            dagster.restart_dead()
            return children.pid(NAME) != first.pid

        # A killed process is there until the kernel has ended it.
        wait_for(is_restarted, "the restart")
        notes = [note for note in read_reports(settings) if note.report.key == "code server"]
        assert [bool(note.resolved) for note in notes] == [False, True]
