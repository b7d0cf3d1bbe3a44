"""The watchdog ends what a killed command left, and nothing that has ended before."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.unit


@pytest.fixture
def sleeping() -> Iterator[subprocess.Popen]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_group_that_ended_is_not_signalled(
    sleeping: subprocess.Popen, has_ended: bool
) -> None:
    lines = f"{sleeping.pid}\n" + (f"-{sleeping.pid}\n" if has_ended else "")
    subprocess.run(
        [sys.executable, "-m", "lakehouse.cli.dev_processes.watchdog"],
        input=lines.encode(),
        check=True,
    )

    assert (sleeping.poll() is None) == has_ended
