"""The files that set the project up: they agree with each other, and say what to do where they
cannot go on.
"""

import re
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def locked(name: str) -> dict[str, set[str]]:
    """Return the versions that a lock file has of each package; more than one where they differ
    by Python.
    """
    versions: dict[str, set[str]] = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if found := re.match(r"([a-z0-9-]+)==([^ ]+)", line):
            versions.setdefault(found[1], set()).add(found[2])
    return versions


def test_the_lock_files_have_what_the_project_asks_for():
    for lock, asked in [
        ("requirements.lock", PROJECT["dependencies"]),
        (
            "requirements-dev.lock",
            PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"],
        ),
    ]:
        versions = locked(lock)
        for requirement in map(Requirement, asked):
            found = versions.get(canonicalize_name(requirement.name), set())
            assert found, f"{requirement.name} is not in {lock}: run `make lock`"
            assert all(version in requirement.specifier for version in found), (
                f"{requirement}: run `make lock`"
            )


def test_what_is_tested_is_what_runs():
    developed = locked("requirements-dev.lock")

    assert {name: developed.get(name) for name in locked("requirements.lock")} == locked(
        "requirements.lock"
    )


def test_lock_files_name_no_host():
    for lock in ("requirements.lock", "requirements-dev.lock"):
        assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


def test_every_target_has_its_line_of_help():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^\.PHONY: ([a-z0-9-]+)$", text, re.MULTILINE))
    told = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert targets
    assert targets == {line.split()[1] for line in told.splitlines()}


def test_without_a_python_it_says_which_one_is_needed(tmp_path):
    command = ["bash", ROOT / ".ci" / "install", tmp_path / "venv", "requirements.lock"]
    done = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", "PYTHON": "no-such-python"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "No Python from 3.11 to 3.13 was found (looked for no-such-python)" in done.stderr
    assert "make setup PYTHON=/path/to/python3.11" in done.stderr
    assert not (tmp_path / "venv").exists()
