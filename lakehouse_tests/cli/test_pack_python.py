"""`lakehouse pack-python`: what is written, where, and what `doctor` says of it."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from lakehouse.cli.project.doctor_checks import findings
from lakehouse.settings import Settings
from lakehouse.spark.executor_archive import (
    REQUIRED_PACKAGES,
    archive_file,
    platform_here,
    python_here,
)
from lakehouse_tests.cli.conftest import Lakehouse


@pytest.fixture
def of_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that the setting names, which is not there yet."""
    file = tmp_path / "env" / "executors.tar.gz"
    monkeypatch.setenv("LAKEHOUSE_EXECUTOR_ARCHIVE", str(file))
    return file


@pytest.mark.long
def test_it_holds_what_executors_need_and_can_be_made_again(
    lakehouse: Lakehouse, of_the_setting: Path, settings: Settings
) -> None:
    ran = lakehouse("pack-python")

    assert (ran.code, ran.err) == (0, [])
    (line,) = ran.out
    assert line.startswith(f"{of_the_setting}: ")
    assert all(f" {name} {version(name)}," in line for name in REQUIRED_PACKAGES)
    assert f", for Python {python_here()} on {platform_here()}; " in line
    assert line.endswith(" MiB")
    assert [*of_the_setting.parent.iterdir()] == [of_the_setting]

    written = of_the_setting.stat()
    assert lakehouse("pack-python").out == [line]
    again = of_the_setting.stat()
    assert (again.st_ino, again.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)

    cluster = replace(settings.cluster, executor_archive=str(of_the_setting))
    there = replace(settings, spark_master="spark://127.0.0.1:1", cluster=cluster)
    told = {finding.name: finding for finding in findings(there)}
    assert told["executors"].ok
    assert told["executors"].found.endswith(f"of each worker's PATH with {of_the_setting}")


@pytest.mark.long
def test_a_bucket_may_have_it_with_more_packages(
    lakehouse, aws_settings, tmp_path, monkeypatch
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(aws_settings.endpoint_url))
    place = f"s3://{aws_settings.bucket}/env/executors.tar.gz"

    ran = lakehouse("pack-python", place, "--with", "Click")

    assert (ran.code, ran.err) == (0, [])
    assert f"click {version('click')}" in ran.out[0]
    assert ran.out[1] == f"Executors have it with LAKEHOUSE_EXECUTOR_ARCHIVE={place}"

    there = replace(aws_settings, cache_dir=tmp_path / "cache")
    fetched = archive_file(there, place)
    assert fetched.is_relative_to(there.cache_dir)
    written = fetched.stat().st_mtime_ns
    assert archive_file(there, place) == fetched
    assert fetched.stat().st_mtime_ns == written


def test_what_is_not_installed_leaves_the_archive_as_it_is(lakehouse, of_the_setting):
    of_the_setting.parent.mkdir()
    of_the_setting.write_bytes(b"one that was made before")

    ran = lakehouse("pack-python", "--with", "no-such-package")

    assert ran.code == 2
    assert ran.err == [
        "lakehouse: The package 'no-such-package' is not installed here; expected one that is, since"
        " it is copied from here. Correct the name, or install it."
    ]
    assert of_the_setting.read_bytes() == b"one that was made before"


@pytest.mark.parametrize("file", ["env.zip", "hdfs://lake/env.tar.gz", "a#b.tar.gz"])
def test_what_spark_does_not_unpack_is_rejected(lakehouse: Lakehouse, file: str) -> None:
    ran = lakehouse("pack-python", file)

    assert ran.code == 2
    assert "expected a file such as executors.tar.gz" in ran.err[0]
