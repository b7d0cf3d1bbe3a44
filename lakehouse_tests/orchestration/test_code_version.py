"""The default version of the code that computes a table."""

import importlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent

import dagster as dg
import pytest

from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.functions.function_code import default_code_version
from lakehouse_tests.cli.projects import forget

pytestmark = pytest.mark.unit

FRUITS = """
    '''Fruits, in silver.'''
    from shop.helpers import left_out, Price
    from . import rates
    from lakehouse.iceberg.read.inputs import latest
    from lakehouse.orchestration.iceberg_asset import iceberg_asset
    from lakehouse.tables.table import Column, IcebergTable, Overwrite

    TABLE = IcebergTable(
        "silver.fruits", "Fruits.", columns=[Column("id", "int")], write=Overwrite()
    )
    UNUSED = 1

    @iceberg_asset(TABLE, inputs={"raw": latest("bronze.raw")})
    def fruits(raw):
        '''Fruits.'''
        kept = raw.where(left_out(WORDS))  # those that are sold
        return kept.selectExpr(rates.factor(), Price.name, TABLE.cast_sql("id", "id"))

    WORDS = ("Banana", "Blueberry")
"""
HELPERS = """
    from shop.words import *

    def left_out(words):
        '''Of some words.'''
        return f"fruit NOT IN {quoted(words)}"

    class Price:
        name = "price"
"""
RATES = """
    RATE = 2

    def factor():
        return str(RATE)
"""
WORDS = """
    from shop.helpers import *

    def quoted(words):
        return tuple(words)
"""
MODULES = {
    "fruits": FRUITS,
    "helpers": HELPERS,
    "rates": RATES,
    "words": WORDS,
    "unrelated": "OTHER = 1",
}
Version = Callable[..., str]


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Version]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "shop"
    folder.mkdir()

    def write(module: str = "fruits", old: str = "", new: str = "") -> str:
        (folder / "__init__.py").write_text("")
        for name, text in MODULES.items():
            assert name != module or old in text
            changed = text.replace(old, new, 1) if name == module else text
            (folder / f"{name}.py").write_text(dedent(changed))
        forget("shop")
        importlib.invalidate_caches()
        asset = importlib.import_module("shop.fruits").fruits
        (found,) = asset.code_versions_by_key.values()
        return found

    yield write
    forget("shop")


@pytest.mark.parametrize(
    "module, old, new",
    [
        ("fruits", "'''Fruits.'''", "'''All fruits, by name.'''"),
        ("fruits", "  # those that are sold", ""),
        ("fruits", "(raw):", "(\n        raw,\n    ):"),
        ("helpers", "'''Of some words.'''", ""),
        ("unrelated", "1", "2"),
    ],
)
def test_comments_docstrings_formatting_and_unrelated_modules_do_not_count(
    version: Version, module: str, old: str, new: str
) -> None:
    assert version(module, old, new) == version()


@pytest.mark.parametrize(
    "module, old, new",
    [
        ("fruits", "raw.where", "raw.filter"),
        ("fruits", "UNUSED = 1", "UNUSED = 2"),
        ("fruits", 'latest("bronze.raw")', 'latest("bronze.other")'),
        ("helpers", "NOT IN", "IN"),
        ("words", "tuple(words)", "list(words)"),
        ("rates", "RATE = 2", "RATE = 3"),
    ],
)
def test_the_module_and_the_project_modules_that_it_imports_count(
    version: Version, module: str, old: str, new: str
) -> None:
    assert version(module, old, new) != version()


def test_a_declared_version_replaces_the_default(version: Version) -> None:
    declared = 'inputs={"raw": latest("bronze.raw")}, code_version="7"'
    assert version("fruits", 'inputs={"raw": latest("bronze.raw")}', declared) == "7"


def test_the_version_is_the_same_on_every_machine_and_python(version: Version) -> None:
    # Written down, so that no upgrade of this or of Python makes every table one of older code.
    assert version() == "0e6331a9fdac"


def test_a_function_without_a_source_file_has_no_version() -> None:
    assert default_code_version(len) is None
    assert default_code_version(partial(dedent)) is None
    made: dict[str, Callable[..., object]] = {}
    exec("def computed(raw): return raw", made)
    assert default_code_version(made["computed"]) is None


def test_each_asset_of_the_samples_has_a_version() -> None:
    from lakehouse.definitions import defs

    graph = asset_graph(defs)
    versions = {key: graph.get(key).code_version for key in graph.executable_asset_keys}
    assert dg.AssetKey(["silver", "fruits"]) in versions
    assert all(versions.values())
