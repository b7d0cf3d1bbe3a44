"""Processes in mount namespaces of their own, in which folders of this machine are empty.

Where the system gives none, tests that need them are skipped, unless REQUIRE_NAMESPACES is set.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

_UNSHARE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "-Urm")


def require_namespaces() -> None:
    """Skip the test where the system lets nobody mount in a namespace of their own."""
    problem = _problem()
    if problem and not os.environ.get("REQUIRE_NAMESPACES"):
        pytest.skip(f"There are no mount namespaces here: {problem}")
    assert not problem, f"REQUIRE_NAMESPACES is set, and there are none: {problem}"


def isolated(
    command: Iterable[str], *, stage: Path, hidden: Iterable[Path], kept: Iterable[Path]
) -> list[str]:
    """Return a command in a namespace where the hidden folders are empty but for the kept ones
    that lie in them.

    :param stage: an empty folder, where what takes a hidden folder's place is put together.
    """
    lines = ["set -e", *_mounts(stage, _outermost(hidden), list(kept))]
    return [*_UNSHARE, "sh", "-c", "\n".join([*lines, f"exec {shlex.join(command)}"])]


def _mounts(stage: Path, hidden: list[Path], kept: list[Path]) -> Iterator[str]:
    # That which holds the stage is the last, since nothing can be staged after it.
    for folder in sorted(hidden, key=lambda folder: stage.is_relative_to(folder)):
        yield _line("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", stage)
        for one in kept:
            if one.is_relative_to(folder):
                place = stage / one.relative_to(folder)
                yield _line("mkdir", "-p", place)
                yield _line("mount", "--bind", one, place)
        yield _line("mount", "--rbind", stage, folder)
        yield _line("umount", "--recursive", "--lazy", stage) + " 2>/dev/null || true"


def _line(*words: object) -> str:
    return shlex.join(map(str, words))


def _outermost(folders: Iterable[Path]) -> list[Path]:
    found = sorted({folder.resolve() for folder in folders if folder.is_dir()})
    return [folder for folder in found if not any(other in folder.parents for other in found)]


@cache
def _problem() -> str:
    if not shutil.which("unshare"):
        return "unshare is not installed"
    tried = subprocess.run(
        [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip() if tried.returncode else ""
