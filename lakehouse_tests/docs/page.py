"""A page of documentation, done from top to bottom, as a reader would who misses nothing out.

The words after a block's language say what is done with it:

- `bash` is run; it must succeed, or fail where it is marked `fails`. A `text` block right after
  it is what is printed.
- `bash elsewhere` holds commands that other tests run, and `ELSEWHERE` says which.
- `python` is run; all Python blocks of a page share their names. A `text` block right after it
  is what is printed.
- `python file=…` is the new content of a file.
"""

import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lakehouse_tests.docs.markdown import Block, blocks
from lakehouse_tests.docs.shell import Ran, commands
from lakehouse_tests.docs.transcript import Transcript

ELSEWHERE = {
    "make setup": "every `make` target begins with it",
    "source .venv/bin/activate": "the tests run in that environment",
    "lakehouse ingest fruits": (
        "from a bucket it is run in lakehouse_tests/cli/test_dev_elsewhere.py, by `dev`"
    ),
    "lakehouse plan --check": "docs/operations.md does it",
    "lakehouse apply": "docs/operations.md does it, of some tables",
    "make demo": (
        "`lakehouse demo`, which it calls, is run in lakehouse_tests/cli/test_processes.py"
    ),
    "make dev": "`lakehouse dev`, which it calls, is run in lakehouse_tests/cli/test_dev.py",
    "make bench BENCHMARKS=refresh": "a smaller one is run in lakehouse_tests/docs/test_why.py",
}
"""Commands that are shown and not run from a page, and why that is right."""

_END = Block("", (), "", 0)


@dataclass
class Page:
    """A page that is being done in a working directory."""

    path: Path
    execute: Callable[[str], Ran]
    monkeypatch: pytest.MonkeyPatch
    transcript: Transcript = field(default_factory=Transcript)
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def blocks(self) -> Sequence[Block]:
        """All fenced blocks, in order."""
        return blocks(self.path.read_text(encoding="utf-8"))

    def do(self) -> None:
        """Do all that the page says."""
        for block, following in pairwise([*self.blocks, _END]):
            printed = self._do_one(block)
            if printed is not None and following.language == "text":
                self.transcript.compare(following.text, printed)

    def _do_one(self, block: Block) -> str | None:
        if block.language == "bash":
            return self._run_shell(block)
        if block.language == "python":
            return self._run_python(block)
        assert block.language in ("text", "json"), (
            f"{self.path.name}:{block.line} is of no language that is run"
        )
        return None

    def _run_shell(self, block: Block) -> str | None:
        if "elsewhere" in block.words:
            assert set(commands(block.text)) <= ELSEWHERE.keys()
            return None
        printed = ""
        for command in commands(block.text):
            self._forget_assets()
            ran = self.execute(self.transcript.real(command))
            assert (ran.code != 0) == ("fails" in block.words), f"{command}\n{ran.out}{ran.err}"
            printed += ran.err if "fails" in block.words else ran.out
        return printed

    def _run_python(self, block: Block) -> str | None:
        for word in block.words:
            if word.startswith("file="):
                Path(word.removeprefix("file=")).write_text(block.text, encoding="utf-8")
                return None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block.text, f"{self.path.name}:{block.line}", "exec"), self.names)
        return printed.getvalue()

    def _forget_assets(self) -> None:
        """Let a command find what is declared by now, as a process of its own would."""
        for name in filter(_is_declaration, [*sys.modules]):
            self.monkeypatch.delitem(sys.modules, name)
            # Its package holds it as well, and would keep the new one for the tests that
            # follow.
            package, _, module = name.rpartition(".")
            if package in sys.modules:
                self.monkeypatch.delattr(sys.modules[package], module, raising=False)


def _is_declaration(name: str) -> bool:
    """Whether a module is of the samples' declarations, or of a project that the page made."""
    if name.startswith(("lakehouse.assets.", "lakehouse.definitions")):
        return True
    file = getattr(sys.modules[name], "__file__", None)
    return file is not None and Path(file).is_relative_to(Path.cwd())
