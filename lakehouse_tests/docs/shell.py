"""Runs shell blocks: `lakehouse` in this process, other commands with bash."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse.cli.program import run


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a block; an open quote or a backslash continues a line."""
    pending = ""
    for line in text.splitlines():
        pending += line + "\n"
        if _is_whole(pending):
            if pending.strip() and not pending.lstrip().startswith("#"):
                yield pending.strip()
            pending = ""
    assert not pending, f"a quote is not closed: {pending}"


def execute(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ran:
    """Run one command of a page in the working directory."""
    words = shlex.split(command, comments=True)
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        monkeypatch.setenv(name, os.path.expandvars(value))
        return Ran(0, "", "")
    if words[0] == "cd":
        monkeypatch.chdir(words[1])
        return Ran(0, "", "")
    capsys.readouterr()
    if words[0] == "lakehouse":
        code = run([*_expanded(words[1:])])
        printed = capsys.readouterr()
        return Ran(code, printed.out, _without_progress(printed.err))
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=Path.cwd()
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def _expanded(words: Sequence[str]) -> Iterator[str]:
    """Yield arguments, with the files in place of a pattern of some."""
    for word in words:
        found = sorted(map(str, Path().glob(word))) if "*" in word and " " not in word else []
        yield from found or [word]


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return not text.rstrip("\n").endswith("\\")


def _without_progress(text: str) -> str:
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.rstrip().endswith("…")
    )
