"""MiniStack for the time of a test: an emulator of AWS whose Glue locks optimistically."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests

from lakehouse_tests.cli.commands import free_port

_BEGINS_WITHIN_SECONDS = 300


@contextmanager
def running_ministack(program: Path, folder: Path) -> Iterator[str]:
    """A server on a free port of this machine alone, for as long as the block takes."""
    port = free_port()
    # By itself it listens on all addresses of the machine.
    given = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "HOME": str(folder)}
    address = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program], cwd=folder, env=os.environ | given, stdout=log, stderr=log
        )
    try:
        _wait(process, address)
        yield address
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def forget_all(address: str) -> None:
    """Empty the account."""
    requests.post(f"{address}/_ministack/reset", timeout=30).raise_for_status()


def _wait(process: subprocess.Popen, address: str) -> None:
    deadline = time.monotonic() + _BEGINS_WITHIN_SECONDS
    while True:
        with suppress(requests.ConnectionError, requests.Timeout):
            if requests.get(f"{address}/_ministack/health", timeout=5).ok:
                return
        assert process.poll() is None, "MiniStack ended"
        assert time.monotonic() < deadline, "MiniStack did not answer"
        time.sleep(0.1)
