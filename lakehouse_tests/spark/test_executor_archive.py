"""The archive for executors: what is in it, what its `python` does, and when it is missing."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from lakehouse.errors import SetupError
from lakehouse.settings import Settings
from lakehouse.spark.executor_archive import (
    archive_bytes,
    archive_file,
    installed_packages,
    python_here,
    runtime_files,
)
from lakehouse_tests.conftest import on_aws
from lakehouse_tests.denying_s3 import denying_s3

pytestmark = pytest.mark.unit

BARE_PYTHON = os.path.realpath(sys.executable)
"""That which the virtual environment was made of, which has none of its packages."""
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package as pip does; returns its folder of notes."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(
        name: str, version: str = "1.0", requires: Sequence[str] = (), **files: str
    ) -> Path:
        shutil.rmtree(site / f"{name}-1.0.dist-info", ignore_errors=True)
        notes = site / f"{name}-{version}.dist-info"
        required = "".join(f"Requires-Dist: {other}\n" for other in requires)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}"
        content = {
            f"{name}/__init__.py": f"VERSION = '{version}'\n",
            f"{notes.name}/METADATA": metadata,
            f"{notes.name}/INSTALLER": "pip\n",
            **files,
        }
        for path, text in content.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(text)
        listed = [*content, f"{notes.name}/RECORD"]
        (notes / "RECORD").write_text("".join(f"{path},,\n" for path in listed))
        return notes

    return install


def archive_of(*requested: str) -> bytes:
    """Return an archive of installed packages."""
    return archive_bytes(runtime_files(installed_packages(requested)))


def unpack(archive: bytes, folder: Path) -> Path:
    """Unpack an archive as Spark does; return its `python`."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
        entries.extractall(folder, filter="data")
    return folder / "bin" / "python"


def search_path(folder: Path, *programs: Path) -> dict[str, str]:
    """Return an environment whose PATH has `uname` and some programs alone."""
    folder.mkdir()
    for program in (Path(str(shutil.which("uname"))), *programs):
        (folder / program.name).symlink_to(program)
    return {"PATH": str(folder)}


def run(python: Path, code: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run some code by the `python` of an archive, and by a path as Spark has it."""
    return subprocess.run(
        ["./env/bin/python", "-c", code],
        cwd=python.parent.parent.parent,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def workers_path(tmp_path: Path) -> dict[str, str]:
    """The PATH of a worker whose Python has no packages."""
    python = tmp_path / f"python{python_here()}"
    python.symlink_to(BARE_PYTHON)
    return search_path(tmp_path / "worker", python)


def test_a_python_without_packages_has_those_of_the_archive(install, tmp_path, workers_path):
    install("apple", requires=["pear>=1"])
    install("pear")
    python = unpack(archive_of("apple"), tmp_path / "env")

    code = "import apple, pear, sys; print(apple.VERSION, pear.__file__); import pyarrow"
    ran = run(python, code, **workers_path)

    assert ran.stdout == f"1.0 {tmp_path / 'env' / 'lib' / 'pear' / '__init__.py'}\n"
    assert "No module named 'pyarrow'" in ran.stderr


def test_without_a_python_of_the_minor_version_one_line_says_so(install, tmp_path):
    install("apple")
    python = unpack(archive_of("apple"), tmp_path / "env")
    ran = run(python, "", **search_path(tmp_path / "bare"))

    assert ran.returncode == 127
    assert ran.stderr.startswith(f"No python{python_here()} is on the PATH of ")
    assert ran.stderr.count("\n") == 1


def test_the_same_packages_give_the_same_bytes(install: Install) -> None:
    install("apple")
    first = archive_of("apple")
    notes = install("apple")
    os.utime(notes.parent / "apple" / "__init__.py", (1, 1))

    assert archive_of("apple") == first


def test_what_code_does_not_need_when_it_runs_is_left_out(install: Install) -> None:
    files = {
        "apple/tests/test_apple.py": "",
        "apple/__pycache__/a.cpython-311.pyc": "",
        "apple/data.json": "{}",
    }
    install("apple", **files)

    assert list(runtime_files(installed_packages(["apple"]))) == [
        "apple-1.0.dist-info/INSTALLER",
        "apple-1.0.dist-info/METADATA",
        "apple-1.0.dist-info/RECORD",
        "apple/__init__.py",
        "apple/data.json",
    ]


def test_requirements_are_followed_by_what_they_are_for(install: Install) -> None:
    install(
        "apple",
        requires=["pear[ripe]", "fig; extra == 'sweet'", "plum; python_version < '3'"],
    )
    install("pear", requires=["quince; extra == 'ripe'", "fig; extra == 'dried'"])
    install("quince", requires=["apple"])

    assert list(installed_packages(["apple"])) == ["apple", "pear", "quince"]


@pytest.mark.parametrize("origin", ['{"url": "file:///a", "dir_info": {"editable": true}}', ""])
def test_a_package_whose_code_lies_elsewhere_is_rejected(install: Install, origin: str) -> None:
    notes = install("apple")
    if origin:
        (notes / "direct_url.json").write_text(origin)
    else:
        (notes / "RECORD").unlink()

    with pytest.raises(SetupError, match="apple is installed without a list of its files"):
        runtime_files({"apple": PathDistribution(notes)})


def test_a_missing_archive_is_rejected(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="Create it with `lakehouse pack-python`"):
        archive_file(settings, str(tmp_path / "env.tar.gz"))


def test_an_archive_that_a_bucket_does_not_return_is_named(settings):
    with denying_s3() as address, pytest.raises(SetupError) as raised:
        archive_file(replace(on_aws(settings), endpoint_url=address), "s3://lake/env.tar.gz")

    assert "s3://lake/env.tar.gz" in str(raised.value)
    assert raised.value.next_step == "Create it with `lakehouse pack-python`."
