"""A `lakehouse dev` that is open for as long as something is measured beside it."""

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
"""The command line of the tree that is first on the path of Python."""
_OPENS_SECONDS = 600.0


@contextmanager
def open_dev(
    env: Mapping[str, str], folder: Path, command: Sequence[str] = COMMAND
) -> Iterator[psutil.Process]:
    """Run `lakehouse dev` in a folder, from when it is open until the end of the block."""
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
        while "is open at" not in (said := log_file.read_text()):
            assert dev.poll() is None and time.monotonic() < until, f"dev did not open: {said}"
            time.sleep(1)
        yield psutil.Process(dev.pid)
    finally:
        dev.terminate()
        dev.wait()
