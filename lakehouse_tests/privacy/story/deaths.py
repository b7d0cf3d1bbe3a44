"""Erasures of a small home whose process is killed in the middle of a step."""

from itertools import count
from typing import Any

from lakehouse.iceberg.erasure import remove_from_files, remove_unnamed
from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.privacy import delivered_files, erasure, erasure_steps
from lakehouse.privacy.places.scrub import ValueMasker
from lakehouse.settings import Settings
from lakehouse_tests.privacy.an_erasure import NAMED, Home, expire_without_spark
from lakehouse_tests.processes import kill_this_process

WITHIN: dict[str, tuple[Any, str, int]] = {
    "once the values are sealed": (erasure_steps, "seal", 1),
    "once the people are suppressed": (erasure_steps, "add_gone", 1),
    "after a delivered file": (delivered_files._FeedFiles, "_collect", 1),
    "after the rows of a table": (erasure_steps, "delete_rows", 1),
    "after a log": (ValueMasker, "mask_file", 1),
    "once files are rewritten": (remove_from_files, "rewrite_erased_files", 1),
    "once manifests are clean": (remove_from_files, "clean_manifests", 1),
    "once snapshots are expired": (remove_from_files, "_expire", 2),
    "after the unnamed files of a table": (remove_unnamed, "_remove", 1),
    "once the deletions are audited": (erasure, "append_actions", 3),
    "once the values are destroyed": (erasure, "destroy", 1),
}
"""Kills the process after a number of calls of a function."""


def erase_and_die(at: str) -> None:
    """Erase from a small home, in a process that is killed on the way."""
    owner, name, calls = WITHIN[at]
    real, number = getattr(owner, name), count(1)

    def dying(*arguments: Any, **options: Any) -> Any:
        done = real(*arguments, **options)
        if next(number) == calls:
            kill_this_process()
        return done

    expire_snapshots._call_procedure = expire_without_spark
    setattr(owner, name, dying)
    Home(Settings.from_env()).erase(*NAMED, now=True)
