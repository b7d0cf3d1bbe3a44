"""The rules that keep the house in order, checked on the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakehouse

PACKAGE = Path(lakehouse.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
READERS = {"settings/__init__.py", "ingestion/staging/executor_task.py"}
"""The modules that may read the environment; others may only set it, for what they start. An executor
has one of its own.
"""
LONGEST_FUNCTION_LINES = 60


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """What each module of the package is parsed to."""
    return {
        str(source.relative_to(PACKAGE)): ast.parse(source.read_text(encoding="utf-8"))
        for source in SOURCES
    }


def test_the_environment_is_read_in_one_place(trees):
    found = {
        (module, line)
        for module, tree in trees.items()
        if module not in READERS and re.search("environ|getenv", (PACKAGE / module).read_text())
        for line in environment_reads(tree)
    }

    assert found == set(), "Settings.from_env is what reads the environment."


def test_no_function_is_too_long_to_be_read(trees):
    long = [
        (module, node.name)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION_LINES
    ]

    assert long == []


def test_pytest_is_imported_where_its_fixtures_are_alone():
    importing = [
        str(source.relative_to(PACKAGE))
        for source in SOURCES
        if "import pytest" in source.read_text(encoding="utf-8")
    ]

    assert importing == ["testing/__init__.py"], (
        "It is not installed where tables are computed."
    )


def environment_reads(tree: ast.AST) -> Iterator[int]:
    """Return the lines that read the environment, in whatever way."""
    written = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("environ", "environb", "getenv")
            and id(node) not in written
        ):
            yield node.lineno
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (
                node.lineno
                for name in node.names
                if name.name in ("environ", "environb", "getenv")
            )
