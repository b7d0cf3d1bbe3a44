"""Functions of a project run as Python of Spark's, which finds no module of it by itself."""

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.functions import udf

from lakehouse.settings import Settings
from lakehouse.spark.project_code import send_project
from lakehouse_tests.cli.projects import forget

PYPROJECT = (
    '[tool.lakehouse]\ndefinitions = "sent_shop.definitions"\nassets = "sent_shop.assets"\n'
)
ASSET = f"""
import os

if os.getpid() != {os.getpid()}:
    raise ImportError("Executors need not have what files of assets import.")
SIGN = "!"

def shout(text):
    from sent_shop.words import louder
    return louder(text) + SIGN
"""
WORDS = "def louder(text):\n    return text.upper()\n"


@pytest.fixture
def project(settings: Settings, tmp_path: Path, monkeypatch) -> Iterator[Settings]:
    """A project that this process alone has imported."""
    files = {
        "pyproject.toml": PYPROJECT,
        "sent_shop/__init__.py": "",
        "sent_shop/words.py": WORDS,
        "sent_shop/assets/__init__.py": "",
        "sent_shop/assets/shouts.py": ASSET,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield replace(settings, project_root=tmp_path, definitions="sent_shop.definitions")
    forget("sent_shop")
    for name in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES.discard(name)


def test_its_functions_run_and_what_they_import_is_there(spark, project):
    shout = import_module("sent_shop.assets.shouts").shout
    louder = import_module("sent_shop.words").louder
    session = spark.newSession()

    send_project(session, project)

    row = session.sql("SELECT 'a' AS a").select(udf(shout)("a"), udf(louder)("a")).first()
    assert tuple(row) == ("A!", "A")


@pytest.mark.unit
def test_of_the_sample_pipelines_and_of_what_is_not_imported_nothing_is_sent(settings, project):
    send_project(None, settings)
    send_project(None, project)
