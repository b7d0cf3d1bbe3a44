"""The tutorial, from its first command to its last, in a working directory of its own."""

import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakehouse.assets
from lakehouse_tests.docs.markdown import ROOT, Block, blocks
from lakehouse_tests.docs.shell import commands, execute
from lakehouse_tests.docs.transcript import Transcript

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "tutorial.md"
BLOCKS = blocks(PAGE.read_text(encoding="utf-8"))

pytestmark = pytest.mark.spark


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files that the tutorial touches; tables are declared by its `lakehouse/assets`."""
    for folder in ("assets", "sample_data"):
        shutil.copytree(ROOT / "lakehouse" / folder, tmp_path / "lakehouse" / folder)
    monkeypatch.setattr(lakehouse.assets, "__path__", [str(tmp_path / "lakehouse" / "assets")])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    return tmp_path


def test_every_command_prints_what_the_page_shows(
    clone: Path,
    spark: "SparkSession",
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transcript = Transcript()
    for block, following in pairwise([*BLOCKS, Block("", (), "", 0)]):
        if block.language == "python":
            _write(clone, block)
        if block.language == "bash" and "set-up" not in block.words:
            _forget_assets(monkeypatch)
            printed = _run(block, transcript, capsys, monkeypatch)
            if following.language == "text":
                transcript.compare(following.text, printed)
    assert not (clone / ".tutorial").exists()


def _run(
    block: Block, transcript: Transcript, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    printed = ""
    for command in commands(block.text):
        ran = execute(transcript.real(command), capsys, monkeypatch)
        assert (ran.code != 0) == ("fails" in block.words), f"{command}\n{ran.out}{ran.err}"
        printed += ran.err if "fails" in block.words else ran.out
    return printed


def _write(clone: Path, block: Block) -> None:
    (file,) = (word.removeprefix("file=") for word in block.words if word.startswith("file="))
    assert (clone / file).exists(), "the page copies a file first"
    (clone / file).write_text(block.text, encoding="utf-8")


def _forget_assets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a command find what is declared by now, as a process of its own would."""
    for name in [name for name in sys.modules if name.startswith(("lakehouse.assets.", "lakehouse.definitions"))]:
        monkeypatch.delitem(sys.modules, name)
