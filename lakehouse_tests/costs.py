"""CPU seconds and JVM starts of each test, including the processes that it starts.

`make costs` loads this plugin. It writes `docs/testing.md`, and fails if a test exceeds the budget
of its marker. Wall time is not compared: it depends on the load of the machine.
"""

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from lakehouse_tests import savepoint

BUDGET_CPU_SECONDS = {"unit": 0.5, "spark": 3.0, "scenario": 60.0}
"""The most that one test may take, by marker. Tests with the marker `long` have no budget."""

_POLL_SECONDS = 0.2
_LISTED_TESTS = 40
_PROPERTY = "costs"
_Process = tuple[int, float]
"""Process id and creation time: the system reuses ids."""


@dataclass(frozen=True)
class _Usage:
    """CPU seconds of this process and its descendants so far, and the JVMs among them."""

    cpu_seconds: float = 0.0
    jvms: int = 0

    def __add__(self, other: "_Usage") -> "_Usage":
        return _Usage(self.cpu_seconds + other.cpu_seconds, self.jvms + other.jvms)

    def __sub__(self, other: "_Usage") -> "_Usage":
        return _Usage(self.cpu_seconds - other.cpu_seconds, self.jvms - other.jvms)


@dataclass
class _Meter:
    """Polls the process tree, because a process that has exited reports nothing."""

    seconds: dict[_Process, float] = field(default_factory=dict)
    jvms: set[_Process] = field(default_factory=set)
    shared: _Usage = _Usage()
    """Usage of setup that several tests share: fixtures with a wide scope, filled homes."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Poll until the session has finished."""
        while not self.stopped.wait(_POLL_SECONDS):
            self.usage()

    def usage(self) -> _Usage:
        """Return the usage of all processes so far."""
        with self.lock:
            for process, name, seconds in _processes():
                self.seconds[process] = seconds
                if name == "java":
                    self.jvms.add(process)
            return _Usage(sum(self.seconds.values()), len(self.jvms))

    def own_usage(self) -> _Usage:
        """Return the usage so far without shared setup."""
        return self.usage() - self.shared

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Charge a block to shared setup, also if it contains other shared setup."""
        before = self.own_usage()
        try:
            yield
        finally:
            self.shared += self.own_usage() - before


@dataclass(frozen=True)
class Cost:
    """What one test used."""

    marker: str
    cpu_seconds: float
    jvms: int

    @property
    def exceeds_budget(self) -> bool:
        """Whether it used more CPU than its marker allows."""
        return self.cpu_seconds > BUDGET_CPU_SECONDS.get(self.marker, float("inf"))


def _processes() -> Iterator[tuple[_Process, str, float]]:
    """Yield this process and its descendants, with their names and CPU seconds."""
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
_before: dict[str, _Usage] = {}
_costs: dict[str, Cost] = {}
_shared: dict[str, float] = {}
"""CPU seconds of shared setup of each worker."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs-page", metavar="FILE", help="write the costs to this page")


def pytest_sessionstart() -> None:
    threading.Thread(target=_meter.run, daemon=True).start()
    savepoint.while_filling = _meter.sharing


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    if fixturedef.scope == "function":
        return (yield)
    with _meter.sharing():
        return (yield)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    _meter.stopped.set()
    over_budget = any(cost.exceeds_budget for cost in _costs.values())
    if over_budget and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _before[item.nodeid] = _meter.own_usage()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when != "teardown":
        return
    used = _meter.own_usage() - _before.pop(item.nodeid)
    markers = [name for name in ("long", *BUDGET_CPU_SECONDS) if item.get_closest_marker(name)]
    marker = "long" if "long" in markers else markers[-1] if markers else "soak"
    cost = (marker, round(used.cpu_seconds, 2), used.jvms)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    item.user_properties.append((_PROPERTY, (cost, worker, _meter.shared.cpu_seconds)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    measured = dict(report.user_properties).get(_PROPERTY)
    if report.when == "teardown" and isinstance(measured, tuple | list):
        cost, worker, shared_cpu_seconds = measured
        _costs[report.nodeid] = Cost(*cost)
        _shared[worker] = shared_cpu_seconds


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = list(_tables())
    terminalreporter.section("costs")
    for line in lines:
        terminalreporter.line(line)
    if page := config.getoption("--costs-page"):
        Path(page).write_text("\n".join([*_heading(), *lines, ""]), encoding="utf-8")


def _heading() -> Iterator[str]:
    git = ["git", "log", "-1", "--format=%h of %cs"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    yield "# Test costs\n"
    yield f"`make costs` wrote this page on {commit}."
    yield "It fails if a test uses more CPU than the budget of its marker."
    yield "`CONTRIBUTING.md` describes the tiers and how to keep tests cheap.\n"


def _tables() -> Iterator[str]:
    yield "| marker | tests | CPU minutes | JVM starts | budget per test (CPU s) | over budget |"
    yield "|---|---:|---:|---:|---:|---:|"
    for marker in sorted({cost.marker for cost in _costs.values()}):
        costs = [cost for cost in _costs.values() if cost.marker == marker]
        minutes = sum(cost.cpu_seconds for cost in costs) / 60
        budget = BUDGET_CPU_SECONDS.get(marker, "none")
        yield (
            f"| {marker} | {len(costs)} | {minutes:.1f} | {sum(cost.jvms for cost in costs)}"
            f" | {budget} | {sum(cost.exceeds_budget for cost in costs)} |"
        )
    yield f"| shared setup | | {sum(_shared.values()) / 60:.1f} | | | |"
    yield "\nThe most expensive tests, and all that are over budget:\n"
    yield "| CPU seconds | JVM starts | marker | test |\n|---:|---:|---|---|"
    budgeted = [test for test in _costs.items() if test[1].marker in BUDGET_CPU_SECONDS]
    by_cost = sorted(budgeted, key=lambda test: -test[1].cpu_seconds)
    for rank, (test, cost) in enumerate(by_cost):
        if cost.exceeds_budget or rank < _LISTED_TESTS:
            excess = " (over)" if cost.exceeds_budget else ""
            yield f"| {cost.cpu_seconds:.1f}{excess} | {cost.jvms} | {cost.marker} | `{test}` |"
    yield "\nThe most expensive files:\n"
    yield "| CPU seconds | file |\n|---:|---|"
    files: Counter[str] = Counter()
    for test, cost in budgeted:
        files[test.partition("::")[0]] += cost.cpu_seconds
    for file, cpu_seconds in files.most_common(_LISTED_TESTS):
        yield f"| {cpu_seconds:.1f} | `{file}` |"
