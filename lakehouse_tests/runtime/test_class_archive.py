"""The archive of Java's classes: which one is used, that a session does, and that it is never
in the way.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.runtime import jvm
from lakehouse.runtime.class_archive import (
    archive_options,
    archive_path,
    archive_problem,
    drop_those_of_others,
)
from lakehouse.runtime.jvm import Jvm
from lakehouse.settings import Settings

SHOWS_MAPS = """
from pathlib import Path
from pyspark import SparkContext
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.runtime.spark import open_session
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


def test_without_an_archive_the_jvm_is_given_no_option(cached: Settings, chosen: Jvm) -> None:
    assert archive_options(cached, chosen) == []
    assert archive_problem(cached, chosen) == "none was made"


def test_one_that_does_not_fit_is_told_of_and_passed_over(
    cached: Settings, chosen: Jvm
) -> None:
    file = archive_path(cached, chosen)
    file.parent.mkdir(parents=True)
    file.touch()
    assert "-Xshare:auto" in archive_options(cached, chosen)
    assert archive_problem(cached, chosen) == "Unable to use shared archive"


def test_those_whose_java_or_spark_is_gone_are_dropped(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept.json", tmp_path / "gone.json"
    kept.write_text(json.dumps({"java": str(tmp_path), "spark": str(tmp_path)}))
    gone.write_text(json.dumps({"java": str(tmp_path), "spark": str(tmp_path / "removed")}))
    for note in (kept, gone):
        note.with_suffix(".jsa").touch()
    drop_those_of_others(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"kept.json", "kept.jsa"}


@pytest.mark.e2e
@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(),
    reason="Only Linux tells which files a process has mapped.",
)
def test_a_session_maps_the_archive_that_set_up_made(settings: Settings, home: Path) -> None:
    file = archive_path(settings, jvm.find(settings))
    assert file.is_file(), "`make setup` makes it"
    given = os.environ | {"LAKEHOUSE_HOME": str(home), "LAKEHOUSE_SPARK_MEMORY": "1g"}
    done = subprocess.run(
        [sys.executable, "-c", SHOWS_MAPS],
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(file) in done.stdout
