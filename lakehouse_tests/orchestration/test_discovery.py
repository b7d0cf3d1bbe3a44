"""What is found by importing a package of assets, and what is said of a file in it that cannot
be right.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.orchestration.discovery import declared_assets, declared_tables, modules_of

pytestmark = pytest.mark.unit

TABLE = """
from lakehouse.iceberg.read.inputs import latest
from lakehouse.tables.table import Column, IcebergTable, Overwrite
from lakehouse.orchestration.iceberg_asset import iceberg_asset

TABLE = IcebergTable("silver.{name}", "A table.", columns=[Column("id", "{type}")], write=Overwrite())


@iceberg_asset(TABLE, inputs={{"given": latest("{reads}")}})
def made(given):
    return given
"""


def table(name: str, column_type: str = "int", reads: str = "silver.a") -> str:
    return TABLE.format(name=name, type=column_type, reads=reads)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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
    modules = modules_of(
        package({"a": table("a"), "b": f"from some_assets.a import TABLE as A\n{table('b')}"})
    )
    assert list(declared_tables(modules)) == ["silver.a", "silver.b"]
    assert len(declared_assets(modules)) == 2


def test_a_table_and_its_quarantine_inherit_the_upkeep_of_their_layer(
    tmp_path: Path, package: Write
) -> None:
    package({"a": table("other").replace("silver.other", "gold.other")})
    layer = tmp_path / "some_assets" / "silver"
    layer.mkdir()
    (layer / "__init__.py").write_text(
        "from lakehouse.tables.upkeep import Upkeep\n"
        "UPKEEP = Upkeep(metadata_files=9, keep_at_least=9)\n"
    )
    (layer / "b.py").write_text(
        "from lakehouse.iceberg.rules.rows import castable\n"
        "from lakehouse.tables.table import Column, IcebergTable, Merge, Upkeep\n"
        "TABLE = IcebergTable('silver.b', '', [Column('id', 'int')], Merge(on='id'),\n"
        "    rules=[castable('id', 'int')], upkeep=Upkeep(keep_at_least=2))\n"
    )
    kept = {}
    for name, declared in declared_tables(modules_of("some_assets")).items():
        policy = declared.upkeep_policy
        kept[name] = (policy.metadata_files, policy.keep_at_least)
    assert kept == {
        "gold.other": (20, 5),
        "silver.b": (9, 2),
        "silver.b_quarantine": (9, 2),
    }


def test_two_files_that_declare_one_table_are_both_named(package: Write) -> None:
    modules = modules_of(package({"a": table("a"), "mine": table("a")}))
    with pytest.raises(
        DeclarationError,
        match=(
            r"^silver\.a is declared twice, in some_assets\.a and in some_assets\.mine; exp"
        ),
    ):
        declared_tables(modules)


def test_a_file_that_cannot_be_imported_is_named(package: Write) -> None:
    with pytest.raises(
        DeclarationError,
        match=(
            r"^some_assets/a\.py:1 cannot be imported: ModuleNotFoundError: No module named"
            r" 'nowhere'\."
        ),
    ):
        modules_of(package({"a": "import nowhere"}))


def test_an_input_that_nothing_declares_is_named(package: Write) -> None:
    modules = modules_of(package({"a": table("a"), "b": table("b", reads="silver.aa")}))
    with pytest.raises(
        DeclarationError,
        match=(
            r"^silver\.b: input given is silver\.aa, which nothing declares; did you mean"
            r" silver\.a\?"
        ),
    ):
        declared_assets(modules)


def test_a_file_that_cannot_be_parsed_is_named_and_not_one_that_imports_it(
    package: Write,
) -> None:
    modules = {"a_gold": "import some_assets.b_silver", "b_silver": "A = 1\nB = (\n"}
    with pytest.raises(
        DeclarationError,
        match=(
            r"^some_assets/b_silver\.py:2 cannot be imported: SyntaxError: '\(' was never"
            r" closed"
        ),
    ):
        modules_of(package(modules))


def test_a_table_that_has_the_name_of_a_quarantine_is_refused(package: Write) -> None:
    refusing = 'write=Overwrite(), rules=[not_null("id")], quarantine_name="silver.b")'
    written = "from lakehouse.iceberg.rules.rows import not_null\n" + table("a").replace(
        "write=Overwrite())", refusing
    )
    modules = modules_of(package({"a": written, "b": table("b")}))
    with pytest.raises(
        DeclarationError,
        match=(
            r"^silver\.b is declared in some_assets\.b, and is the quarantine of silver\.a too"
        ),
    ):
        declared_tables(modules)


def test_two_functions_of_one_table_are_both_named(package: Write) -> None:
    second = """
    from lakehouse.iceberg.read.inputs import latest
    from lakehouse.orchestration.iceberg_asset import iceberg_asset
    from some_assets.a import TABLE


    @iceberg_asset(TABLE, inputs={"given": latest("silver.a")})
    def other(given):
        return given
    """
    modules = modules_of(package({"a": table("a"), "b": dedent(second)}))
    with pytest.raises(
        DeclarationError,
        match=(r"^silver\.a is computed twice, in some_assets\.a and in some_assets\.b;"),
    ):
        declared_assets(modules)


def test_a_rule_that_reads_what_nothing_declares_is_named(package: Write) -> None:
    rule = 'rules=[references("id", "silver.{}")], write=Overwrite())'
    imports = "from lakehouse.iceberg.rules.unique_and_references import references\n"
    written = imports + table("b").replace("write=Overwrite())", rule.format("aa"))
    with pytest.raises(
        DeclarationError,
        match=r"reads silver\.aa, which nothing declares; did you mean silver\.a\?",
    ):
        declared_assets(modules_of(package({"a": table("a"), "b": written})))


def test_a_table_that_holds_people_and_does_not_say_who_is_named(package: Write) -> None:
    people = table("a").replace("write=Overwrite())", 'write=Overwrite(), subject="id")')
    modules = modules_of(package({"a": people, "b": table("b")}))
    with pytest.raises(
        DeclarationError,
        match=r"^silver\.b has id \(the subject in silver\.a\), and declares no",
    ):
        declared_assets(modules)


def test_a_table_that_is_made_elsewhere_may_be_read(package: Write) -> None:
    made_elsewhere = "import dagster as dg\nELSEWHERE = dg.AssetSpec(['bronze', 'theirs'])"
    modules = modules_of(
        package({"a": table("a", reads="bronze.theirs"), "elsewhere": made_elsewhere})
    )
    assert len(declared_assets(modules)) == 2
