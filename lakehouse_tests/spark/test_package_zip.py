"""The zip of this package, which executors are sent."""

from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from lakehouse.settings import Settings
from lakehouse.spark.project_code import package_zip

pytestmark = pytest.mark.unit


def test_it_is_made_once_in_the_cache(settings: Settings, tmp_path: Path) -> None:
    cached = replace(settings, cache_dir=tmp_path / "cache")
    file = package_zip(cached)
    written = file.stat().st_mtime_ns
    assert file.parent == tmp_path / "cache" / "packages"
    assert package_zip(cached) == file
    assert file.stat().st_mtime_ns == written
    assert "lakehouse/spark/project_code.py" in ZipFile(file).namelist()


def test_where_the_cache_cannot_be_written_it_lies_in_the_home(settings, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder is to be")
    file = package_zip(replace(settings, cache_dir=tmp_path / "cache"))
    assert file.is_relative_to(settings.home / "tmp")
    assert "lakehouse/spark/project_code.py" in ZipFile(file).namelist()
