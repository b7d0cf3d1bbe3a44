"""Runs `lakehouse dev` during measurements."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

PORT = 3179
COMMAND = (
    sys.executable,
    "-c",
    "import sys; from lakehouse.cli import main; sys.exit(main())",
)
"""Runs the code that is first on the Python path."""
_OPENS_SECONDS = 600.0


@contextmanager
def open_dev(
    env: Mapping[str, str], folder: Path, command: Sequence[str] = COMMAND
) -> Iterator[psutil.Process]:
    """Run `lakehouse dev` in a folder; yields once it is open."""
    log_file = folder / "dev.log"
    with log_file.open("wb") as log:
        dev = subprocess.Popen(
            [*command, "dev", "--port", str(PORT)],
            env=env,
            cwd=folder,
            stderr=log,
            stdout=log,
        )
    try:
        until = time.monotonic() + _OPENS_SECONDS
        while "is open at" not in (log_text := log_file.read_text()):
            assert dev.poll() is None and time.monotonic() < until, (
                f"dev did not open: {log_text}"
            )
            time.sleep(1)
        yield psutil.Process(dev.pid)
    finally:
        dev.terminate()
        dev.wait()
