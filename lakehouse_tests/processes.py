"""Python processes of their own, each with its own JVM or its own client of a Spark Connect
server, on one home.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from lakehouse.iceberg.catalog.engine import Engine

T = TypeVar("T")
ROOT = Path(__file__).parent.parent
KILLED = -signal.SIGKILL
_UNTIL_ENDED_SECONDS = 600
# Hadoop starts `chmod` for each local file, and Java a process of its own for each start: a
# tenth of Spark's time. Systems other than Linux know no other way.
STARTS_QUICKLY = "-Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""
# With the second compiler and a collector of several threads, so short a life takes twice the
# time.
_SHORT_LIVED_JVM = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {STARTS_QUICKLY}"
_SHOWN = 4000
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 0.5


@dataclass(frozen=True)
class Child:
    """A process that was started; what it says goes to a file, so that a full pipe cannot stop
    it.
    """

    process: subprocess.Popen
    log: Path
    answer: Path

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def status(self, timeout_seconds: float = _UNTIL_ENDED_SECONDS) -> int:
        """Wait for its end, and return its exit status; that of a process killed by a signal is
        below 0.
        """
        return self.process.wait(timeout_seconds)

    def result(self) -> Any:
        """Wait for its end, and return what its function returned."""
        assert self.status() == 0, (
            f"{self.process.args} ended with {self.process.returncode}:\n{self.said[-_SHOWN:]}"
        )
        return json.loads(self.answer.read_text(encoding="utf-8"))

    @property
    def said(self) -> str:
        """All that it wrote to its standard output and error."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it, where it still runs, without giving it a chance to clean up."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


def start(
    home: Path,
    function: Callable[..., Any],
    *,
    env: dict[str, str] | None = None,
    **arguments: Any,
) -> Child:
    """Run a function of a module, with arguments that JSON knows, in a Python process of its
    own.

    The process works on `home` with a small JVM, or as a client where `env` has a SPARK_REMOTE.
    """
    target = f"{function.__module__}:{function.__qualname__}"
    return start_command(
        [sys.executable, "-m", __name__, target, json.dumps(arguments)], home, env=env
    )


def start_command(
    command: list[str], home: Path, *, env: dict[str, str] | None = None, cwd: Path = ROOT
) -> Child:
    """Run a command on a home, with a small JVM."""
    folder = home.parent / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("*.log")))
    log, answer = folder / f"{number}.log", folder / f"{number}.json"
    # A client of a server cannot say what memory that has.
    memory = "" if env and env.get("SPARK_REMOTE") else "1g"
    given = {
        "LAKEHOUSE_HOME": str(home),
        "LAKEHOUSE_SPARK_MASTER": "local[2]",
        "LAKEHOUSE_SPARK_MEMORY": memory,
        "JDK_JAVA_OPTIONS": _SHORT_LIVED_JVM,
        "LAKEHOUSE_TEST_ANSWER": str(answer),
        **(env or {}),
    }
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=os.environ | given,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    return Child(process, log, answer)


def engine_of_process(home: str | None = None, lock_dir: str | None = None) -> Engine:
    """Return the engine of the process that asks; with a lock folder of its own, as if it were
    on another host.
    """
    from lakehouse.orchestration.deployment import open_engine
    from lakehouse.settings import Settings

    settings = Settings.from_env()
    engine = open_engine(replace(settings, home=Path(home)) if home else settings)
    return replace(engine, lock_dir=Path(lock_dir)) if lock_dir else engine


def wait_for(happened: Callable[[], T], what: str, timeout_seconds: float = 120) -> T:
    """Wait until something has happened, and return what tells it.

    A look at tables or runs takes a tenth of a second of the processor, which those that are
    waited for need: after each, twice as long is waited as it took.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        began_at = time.monotonic()
        if found := happened():
            return found
        now = time.monotonic()
        assert now < deadline, f"{what} did not happen within {timeout_seconds} s"
        time.sleep(min(max(_PAUSE_SECONDS, 2 * (now - began_at)), _LONGEST_PAUSE_SECONDS))


def meet(folder: Path, parties: int) -> None:
    """Wait until as many processes have come here, so that none is ahead for having started
    sooner.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(os.getpid())).touch()
    wait_for(
        lambda: len(list(folder.iterdir())) >= parties,
        f"the meeting of {parties} processes",
        300,
    )


def kill_this_process() -> None:
    """End this process on the spot, as a machine's out-of-memory killer does."""
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the function that the command line names, and leave what it returns in a file."""
    module, _, name = sys.argv[1].partition(":")
    answer = getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2]))
    Path(os.environ["LAKEHOUSE_TEST_ANSWER"]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
