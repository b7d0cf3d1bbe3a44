"""What the page lets Glue install is all that a job imports."""

import re
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions

import pytest

from lakehouse_tests.docs.markdown import ROOT

pytestmark = pytest.mark.unit
BROUGHT_BY_GLUE = {"boto3", "pandas", "pyspark", "setuptools"}
OPTIONAL = {"attrs", "backports-zstd", "greenlet"}
"""What rich, urllib3 and SQLAlchemy import where it is there."""
IMPORTS = """
import sys
from pathlib import Path

import lakehouse.table_job
import pyiceberg.catalog.glue, pyiceberg.io.pyarrow
from lakehouse.project import load_project
from lakehouse.settings import Settings

project = load_project(Settings(home=Path(sys.argv[1]), deployment="aws", bucket="lake"))
project.suppression_list(Settings(home=Path(sys.argv[1])))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def with_what_they_need(names: set[str]) -> set[str]:
    waiting, found = [*names], set()
    while waiting:
        name = normal(waiting.pop())
        if name in found:
            continue
        found.add(name)
        try:
            needs = distribution(name).requires or []
        except ModuleNotFoundError:
            # It is of another system or Python.
            continue
        waiting += [re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need]
    return found


@pytest.mark.long
def test_the_page_names_all_that_a_job_imports(tmp_path):
    page = (ROOT / "docs" / "glue.md").read_text(encoding="utf-8")
    listed = page.partition("--additional-python-modules")[2].partition("]")[0]
    installed = {re.split(r"[~>=]", name)[0] for name in re.findall(r'"([\w.~>=-]+)"', listed)}
    printed = subprocess.run(
        [sys.executable, "-c", IMPORTS, tmp_path], capture_output=True, text=True, check=True
    ).stdout
    brought_by = packages_distributions()
    imported = {
        normal(name) for module in printed.split() for name in brought_by.get(module, ())
    }

    assert "dagster-pipes" in installed
    assert imported - with_what_they_need(installed | BROUGHT_BY_GLUE) - OPTIONAL == {
        "lakehouse"
    }
