"""Erasures that are about to die, after a step or in the middle of one."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from lakehouse.cli.program import run
from lakehouse.iceberg.erasure import remove_from_files, remove_unnamed
from lakehouse.privacy import delivered_files, erasure, erasure_steps, recompute
from lakehouse.privacy import run_erasure as erasing
from lakehouse.privacy.places.scrub import ValueMasker
from lakehouse.settings import Settings
from lakehouse_tests.privacy.an_erasure import NAMED, Home
from lakehouse_tests.processes import kill_this_process

AFTER = [f"after {step.__name__}" for _, step in erasing.STEPS]
_WITHIN: dict[str, tuple[Any, str, int]] = {
    "once the values are sealed": (erasure_steps, "seal", 1),
    "once they are gone": (erasure_steps, "add_gone", 1),
    "after a delivered file": (delivered_files._FeedFiles, "_collect", 1),
    "after the rows of a table": (erasure_steps, "delete_rows", 1),
    "after a table of sums": (recompute, "_compute", 1),
    "after a log": (ValueMasker, "mask_file", 1),
    "once files are written again": (remove_from_files, "rewrite_erased_files", 1),
    "once manifests are clean": (remove_from_files, "clean_manifests", 1),
    "once snapshots are expired": (remove_from_files, "_expire", 2),
    "after the unnamed files of a table": (remove_unnamed, "_remove", 1),
    "once what went is audited": (erasure, "append_actions", 3),
    "once the values are destroyed": (erasure, "destroy", 1),
}
"""Where a process dies: once a function was called so many times."""
WITHIN = list(_WITHIN)


def prepare(at: str) -> None:
    """Let this process die at some point of an erasure."""
    if at in _WITHIN:
        _die_after(*_WITHIN[at])
        return
    number = AFTER.index(at)
    said, step = erasing.STEPS[number]
    erasing.STEPS = [
        *erasing.STEPS[:number],
        (said, _dying(step, 1)),
        *erasing.STEPS[number + 1 :],
    ]


def erase_and_die(at: str, arguments: Sequence[str]) -> int:
    """Erase as the command does, and die on the way."""
    prepare(at)
    return run(("erase", *arguments))


def erase_without_spark_and_die(at: str) -> None:
    """Erase from a small home, and die before Spark would be asked for."""
    prepare(at)
    Home(Settings.from_env()).erase(*NAMED, now=True)


def _die_after(owner: Any, name: str, calls: int) -> None:
    setattr(owner, name, _dying(getattr(owner, name), calls))


def _dying(real: Callable[..., Any], calls: int) -> Callable[..., Any]:
    number = count(1)

    def dying(*given: Any, **named: Any) -> Any:
        done = real(*given, **named)
        if next(number) == calls:
            kill_this_process()
        return done

    return dying
