"""The package as its users have it: a wheel, installed in an environment of its own."""

import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

from lakehouse_tests.processes import ROOT

_SOURCES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE")
_INSTALL = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", "install")


def install_wheel(folder: Path) -> Path:
    """Build the wheel, install it in a new environment, and return the folder of its programs.

    Nothing is fetched: what it depends on is found where this Python has it. The lakehouse that
    this Python has is not: of a folder that is named in a `.pth`, other such files are not read.
    """
    environment = folder / "environment"
    venv.create(environment, symlinks=True, with_pip=True)
    python = environment / "bin" / "python"
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    wheel = _built(_copied(folder / "source"))
    options = ["--no-deps", "--no-index", "--ignore-installed"]
    subprocess.run([python, *_INSTALL, *options, wheel], check=True, env={})
    return python.parent


def _built(source: Path) -> Path:
    """Return the wheel, built by what `pyproject.toml` names, which is installed here."""
    build = "from setuptools import build_meta; build_meta.build_wheel('.')"
    command = [sys.executable, "-c", build]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = source.glob("lakehouse-*.whl")
    return wheel


def _copied(target: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lakehouse", target / "lakehouse", ignore=ignored)
    for name in _SOURCES:
        shutil.copy(ROOT / name, target)
    return target
