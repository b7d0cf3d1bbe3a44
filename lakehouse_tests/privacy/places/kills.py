"""Processes that are killed before each of the steps that change a file."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from lakehouse.privacy.places import scrub
from lakehouse.privacy.places.scrub import scrub_places
from lakehouse.settings import Settings
from lakehouse_tests.privacy.places.a_person import PERSON, traces
from lakehouse_tests.processes import kill_this_process

_CHANGING = ("VACUUM", "PRAGMA wal_checkpoint")


def scrub_after_each_death(folder: str) -> list[list[str]]:
    """Scrub copies of a home: each is killed at a later step, and scrubbed again by another process.

    Return where the person was left after that, for each step.
    """
    left = []
    for steps in count():
        copy = Path(folder).with_name(f"home-{steps}")
        shutil.copytree(folder, copy, symlinks=True)
        settings = replace(Settings.from_env(), home=copy)
        was_killed = _was_killed(settings, steps)
        scrub_places(settings, [PERSON])
        left.append(traces(copy))
        if not was_killed:
            return left
    return left


def _was_killed(settings: Settings, steps: int) -> bool:
    """Scrub in a process that is killed before its step of that number."""
    # This process has no thread that a fork would lose.
    child = os.fork()
    if not child:
        _die_before(steps)
        scrub_places(settings, [PERSON])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WIFSIGNALED(status)
    return os.WIFSIGNALED(status)


def _die_before(steps: int) -> None:
    left = iter(range(steps))

    def step() -> None:
        if next(left, None) is None:
            kill_this_process()

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            step()
            return real(*given, **named)

        return call

    def traced(statement: str) -> None:
        if statement.startswith(_CHANGING):
            step()

    real_open = scrub.connect

    def open_traced(file: Path) -> sqlite3.Connection:
        connection = real_open(file)
        connection.set_trace_callback(traced)
        return connection

    scrub.connect = open_traced
    os.pwrite = dying(os.pwrite)
    shutil.rmtree = dying(shutil.rmtree)
    Path.replace = dying(Path.replace)
    Path.unlink = dying(Path.unlink)
