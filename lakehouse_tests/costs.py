"""What each test costs: the processor's seconds of it and all that it starts, and how many JVMs.

`make costs` loads it. Wall time says little on a machine that does other things as well.
"""

import ast
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

_KEPT_LOW = """What keeps the time of `make test` low:

- What many tests of a file begin with is made once, and brought back for each of them: the home of a command, or an engine's tables (`savepoint.py`).
- A catalog in SQLite does not wait for the disk at each commit (`unsynced_catalogs.py`); the processes of whole commands do.
- What boto3 and moto know of AWS is read once for each worker (`aws_models.py`).
- A look at a `lakehouse dev` that something is waited for takes at most a third of a processor (`wait_for` in `processes.py`).
- Of a property that takes Spark few examples are tried, and more in `make soak` (`examples.py`).
- What the engine's own tests show of any table is shown of late transactions, and of most changes to them, once more in `make soak` alone.
- Of the modes, kinds of columns, time zones, steps and moments of a kill that a test is repeated for, those that differ most are tried, and the others in `make soak` (`examples.py`).
- Modules and tests are not looked through for garbage again and again (`conftest.py`).
- What a session was told of a test's catalog is taken back after the test: Spark sends its whole configuration with each task (`conftest.py`).
- An evolution that Glue keeps no copy of is tried on SQLite alone, and on Glue in `make test-glue-catalog`.
- A cluster, deaths of processes, contests of writers, and `dev` in a project of an installed wheel are in `make test-long`.
"""
_EVERY_SECONDS = 0.2
_SLOWEST = 50
_PROPERTY = "costs"
_Process = tuple[int, float]
"""Its number, and when it was started: numbers come again."""


@dataclass
class _Meter:
    """The processes below this one, looked at again and again, since one that has ended tells
    nothing.
    """

    seconds: dict[_Process, float] = field(default_factory=dict)
    jvms: set[_Process] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Look until the run has ended."""
        while not self.ended.wait(_EVERY_SECONDS):
            self.look()

    def look(self) -> tuple[float, int]:
        """Return the seconds of all processes so far, and how many of them were JVMs."""
        with self.lock:
            for process, name, seconds in _processes():
                self.seconds[process] = seconds
                if name == "java":
                    self.jvms.add(process)
            return sum(self.seconds.values()), len(self.jvms)


def _processes() -> Iterator[tuple[_Process, str, float]]:
    """Yield this process and all that it started: each with its name and seconds."""
    this = psutil.Process()
    for process in [this, *this.children(recursive=True)]:
        try:
            with process.oneshot():
                times = process.cpu_times()
                key = (process.pid, process.create_time())
                name = process.name()
        except psutil.NoSuchProcess:
            continue
        yield key, name, times.user + times.system


_meter = _Meter()
_before: dict[str, tuple[float, int]] = {}
_costs: dict[str, tuple[float, int]] = {}


def pytest_sessionstart() -> None:
    threading.Thread(target=_meter.run, daemon=True).start()


def pytest_sessionfinish() -> None:
    _meter.ended.set()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _before[item.nodeid] = _meter.look()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "teardown":
        seconds, jvms = _meter.look()
        seconds_before, jvms_before = _before.pop(item.nodeid)
        cost = (round(seconds - seconds_before, 2), jvms - jvms_before)
        item.user_properties.append((_PROPERTY, cost))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    cost = dict(report.user_properties).get(_PROPERTY)
    if report.when == "teardown" and isinstance(cost, tuple | list):
        _costs[report.nodeid] = (cost[0], cost[1])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--costs-page", metavar="FILE", help="write the costs of a run that passed here as well"
    )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    lines = list(_tables(config.rootpath))
    terminalreporter.section("costs")
    for line in lines:
        terminalreporter.line(line)
    page = config.getoption("--costs-page")
    if page and exitstatus == pytest.ExitCode.OK:
        Path(page).write_text("\n".join([*_heading(), *lines, ""]), encoding="utf-8")


def _heading() -> Iterator[str]:
    """Yield the lines above the tables: what the figures are, and of which code."""
    git = ["git", "log", "-1", "--format=%h of %cs"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    yield "# What the tests cost\n"
    yield f"Written by `make costs` on {commit}, after a run that passed.\n"
    yield _KEPT_LOW


def _tables(root: Path) -> Iterator[str]:
    """Yield the lines of the sums, the slowest tests, and the tests that start JVMs."""
    minutes = sum(seconds for seconds, _ in _costs.values()) / 60
    jvms = Counter({test: count for test, (_, count) in _costs.items() if count})
    yield f"{len(_costs)} tests, {minutes:.1f} minutes of the processor, {jvms.total()} JVMs"
    yield "\n| seconds of the processor | test |\n|---:|---|"
    slowest = sorted(_costs.items(), key=lambda test: -test[1][0])[:_SLOWEST]
    for test, (seconds, _) in slowest:
        yield f"| {seconds:.1f} | `{test}` |"
    yield "\n| JVMs | test | why |\n|---:|---|---|"
    for test, count in jvms.most_common():
        yield f"| {count} | `{test}` | {_reason(root, test)} |"


def _reason(root: Path, test: str) -> str:
    """Return why a test starts JVMs: the first sentence that its file says of itself."""
    path = root / test.partition("::")[0]
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ")
