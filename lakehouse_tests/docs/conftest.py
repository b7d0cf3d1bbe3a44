"""A working directory as a clone has it, in which a page is done."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakehouse.assets
from lakehouse_tests.cli.projects import forget_below
from lakehouse_tests.docs.markdown import ROOT
from lakehouse_tests.docs.page import Page
from lakehouse_tests.docs.shell import execute


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the samples, which declare the tables."""
    for folder in ("assets", "sample_data"):
        shutil.copytree(ROOT / "lakehouse" / folder, tmp_path / "lakehouse" / folder)
    monkeypatch.setattr(lakehouse.assets, "__path__", [str(tmp_path / "lakehouse" / "assets")])
    monkeypatch.chdir(tmp_path)
    # A project that a page makes is put there, to be found.
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PWD", str(tmp_path))
    yield tmp_path
    forget_below(tmp_path)


@pytest.fixture
def page_without_spark(clone, capsys, monkeypatch):
    """Open a page in the working directory; its commands run in this process."""
    return lambda path: Page(
        ROOT / path, lambda command: execute(command, capsys, monkeypatch), monkeypatch
    )


@pytest.fixture
def page(spark, page_without_spark):
    """Open a page whose commands use the session that is there."""
    return page_without_spark
