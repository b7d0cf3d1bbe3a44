"""The package imports no package that only the development environment has."""

import ast
import re
import sys
from importlib.metadata import packages_distributions

import pytest

from lakehouse_tests.processes import ROOT

pytestmark = pytest.mark.unit

NOT_INSTALLED = {"lakehouse", "pytest", "mypy_boto3_s3"}
"""Itself, what `lakehouse.testing` needs in tests of projects, and types."""


def imported_modules() -> set[str]:
    modules = set()
    for file in (ROOT / "lakehouse").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module)
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names


def test_the_lock_of_an_installation_has_every_imported_package() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    installed = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    brought_by = packages_distributions()
    missing = {
        module
        for module in imported_modules() - NOT_INSTALLED
        if installed.isdisjoint(name.lower().replace("_", "-") for name in brought_by[module])
    }

    assert missing == set()
