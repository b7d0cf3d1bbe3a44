"""What is found by importing a package of assets, and what is said of a file in it that cannot be right."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.resources.discovery import declared_assets, declared_tables, modules_of

pytestmark = pytest.mark.unit

TABLE = """
from lakehouse.iceberg.read import latest
from lakehouse.iceberg.table import Column, IcebergTable, Overwrite
from lakehouse.resources.iceberg_asset import iceberg_asset

TABLE = IcebergTable("silver.{name}", "A table.", columns=[Column("id", "{type}")], write=Overwrite())


@iceberg_asset(TABLE, inputs={{"given": latest("{reads}")}})
def made(given):
    return given
"""


def table(name: str, column_type: str = "int", reads: str = "silver.a") -> str:
    return TABLE.format(name=name, type=column_type, reads=reads)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write modules of a package of assets; they are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def write(modules: Mapping[str, str]) -> str:
        folder = tmp_path / "some_assets"
        folder.mkdir()
        for name, text in {"__init__": "", **modules}.items():
            (folder / f"{name}.py").write_text(dedent(text))
        return "some_assets"

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("some_assets"):
            del sys.modules[name]


Write = Callable[[Mapping[str, str]], str]


def test_each_table_is_found_once_wherever_it_is_imported(package: Write) -> None:
    modules = modules_of(package({"a": table("a"), "b": f"from some_assets.a import TABLE as A\n{table('b')}"}))
    assert list(declared_tables(modules)) == ["silver.a", "silver.b"]
    assert len(declared_assets(modules)) == 2


def test_two_files_that_declare_one_table_are_both_named(package: Write) -> None:
    modules = modules_of(package({"a": table("a"), "mine": table("a")}))
    with pytest.raises(
        DeclarationError, match=r"^silver\.a is declared twice, in some_assets\.a and in some_assets\.mine; expected"
    ):
        declared_tables(modules)


def test_a_type_that_does_not_exist_is_named_with_its_column_and_file(package: Write) -> None:
    with pytest.raises(DeclarationError, match=r"^In some_assets\.a: Column id: 'integr' is not a column type"):
        modules_of(package({"a": table("a", column_type="integr")}))


def test_a_file_that_cannot_be_imported_is_named(package: Write) -> None:
    with pytest.raises(
        DeclarationError, match=r"^some_assets\.a cannot be imported: ModuleNotFoundError: No module named 'nowhere'\."
    ):
        modules_of(package({"a": "import nowhere"}))


def test_an_input_that_nothing_declares_is_named(package: Write) -> None:
    modules = modules_of(package({"a": table("a"), "b": table("b", reads="silver.aa")}))
    with pytest.raises(
        DeclarationError,
        match=r"^silver\.b: input given is silver\.aa, which nothing declares; expected one of silver\.a, silver\.b\.",
    ):
        declared_assets(modules)


def test_a_table_that_is_made_elsewhere_may_be_read(package: Write) -> None:
    made_elsewhere = "import dagster as dg\nELSEWHERE = dg.AssetSpec(['bronze', 'theirs'])"
    modules = modules_of(package({"a": table("a", reads="bronze.theirs"), "elsewhere": made_elsewhere}))
    assert len(declared_assets(modules)) == 2
