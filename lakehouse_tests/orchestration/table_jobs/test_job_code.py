"""The code of a job is what this process computes by, under a name that changes with it."""

import io
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.orchestration.table_jobs.job_choice import TableJobs
from lakehouse.orchestration.table_jobs.job_code import SCRIPT, publish_code
from lakehouse.settings import Settings, TableJob
from lakehouse.storage.s3 import S3ObjectStore, open_bucket
from lakehouse_tests.cli.projects import forget

pytestmark = pytest.mark.unit
TOTALS = "code_shop/totals.sql"


@pytest.fixture
def project(aws_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("code_shop/__init__.py", "code_help.py", "code_idle/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("A = 1\n")
    (tmp_path / "code_shop" / "totals.sql").write_text("SELECT 1")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("code_shop")
    __import__("code_help")
    yield replace(
        aws_settings,
        definitions="code_shop.definitions",
        project_root=tmp_path,
        jobs=(TableJob("gold.*", "lakehouse"),),
    )
    forget("code_shop")
    sys.modules.pop("code_help")


def archive_of(store: S3ObjectStore, url: str) -> zipfile.ZipFile:
    content = store.open(url.removeprefix("s3://lake/")).read()
    return zipfile.ZipFile(io.BytesIO(content))


def names_in(store: S3ObjectStore, url: str) -> list[str]:
    return archive_of(store, url).namelist()


def test_the_archive_has_the_lakehouse_and_what_the_project_imported(project):
    store = open_bucket(project)
    names = names_in(store, publish_code(project, store))

    assert {"lakehouse/table_job.py", "lakehouse/spark/log4j2.properties"} <= set(names)
    assert [name for name in names if name.startswith("code_")] == [
        "code_help.py",
        "code_shop/__init__.py",
        "code_shop/totals.sql",
    ]
    assert not [name for name in names if "__pycache__" in name]


def test_a_file_that_is_edited_after_a_run_began_goes_along_as_it_was(project, tmp_path):
    TableJobs.of_run(project)
    (tmp_path / "code_shop" / "totals.sql").write_text("SELECT 2")
    store = open_bucket(project)

    assert archive_of(store, publish_code(project, store)).read(TOTALS) == b"SELECT 1"


def test_a_changed_script_is_put_there_again(project):
    store = open_bucket(project)
    publish_code(project, store)
    store.write_text(SCRIPT, "of an older version")
    publish_code(project, store)

    assert b"fetch_code" in store.open(SCRIPT).read()


@pytest.mark.parametrize(
    ("package_data", "data"),
    [
        ("", []),
        ('"*" = ["*.csv"]\ncode_shop = ["rates.*"]\n', ["rates.json", "sub/rates.csv"]),
    ],
)
def test_of_what_lies_in_a_package_its_code_and_declared_data_go_along(
    project, tmp_path, package_data, data
):
    (tmp_path / "code_shop" / "sub").mkdir()
    for name in ("rates.json", "secret.json", "sub/rates.csv", "key.pem", "notes.txt"):
        (tmp_path / "code_shop" / name).write_text("values")
    declared = f"[tool.setuptools.package-data]\n{package_data}"
    (tmp_path / "pyproject.toml").write_text(declared)
    store = open_bucket(project)
    names = names_in(store, publish_code(project, store))

    sent = [name.partition("/")[2] for name in names if name.startswith("code_shop/")]
    assert sent == ["__init__.py", *data, "totals.sql"]


@pytest.mark.parametrize(
    ("folder", "is_sent"),
    [("src", True), (".venv/lib/python3.13/site-packages", False), ("../elsewhere", False)],
)
def test_what_lies_beside_the_package_of_the_definitions_goes_along(
    aws_settings, tmp_path, monkeypatch, folder, is_sent
):
    root, code = tmp_path / "project", tmp_path / "project" / folder
    root.mkdir()
    for name in ("laid_shop/__init__.py", "laid_help.py", "laid_rates/__init__.py"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("A = 1\n")
    monkeypatch.syspath_prepend(code.resolve())
    modules = ("laid_shop", "laid_help", "laid_rates")
    for module in modules:
        __import__(module)
    project = replace(aws_settings, definitions="laid_shop.definitions", project_root=root)
    store = open_bucket(project)
    names = names_in(store, publish_code(project, store))
    for module in modules:
        forget(module)

    beside = ["laid_help.py", "laid_rates/__init__.py"] if is_sent else []
    assert [name for name in names if name.startswith("laid_")] == [
        *beside,
        "laid_shop/__init__.py",
    ]
