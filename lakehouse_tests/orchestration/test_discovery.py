"""Discovery in a package of assets, and the errors of its declarations."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.orchestration.discovery import declared_assets, declared_tables, modules_of
from lakehouse_tests.cli.projects import forget

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
    monkeypatch.syspath_prepend(tmp_path)

    def write(modules: Mapping[str, str]) -> str:
        folder = tmp_path / "some_assets"
        folder.mkdir()
        for name, text in {"__init__": "", **modules}.items():
            (folder / f"{name}.py").write_text(dedent(text))
        return "some_assets"

    yield write
    forget("some_assets")


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
    assert kept == {"gold.other": (20, 5), "silver.b": (9, 2), "silver.b_quarantine": (9, 2)}


SECOND = """
from lakehouse.iceberg.read.inputs import latest
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from some_assets.a import TABLE


@iceberg_asset(TABLE, inputs={"given": latest("silver.a")})
def other(given):
    return given
"""
WRITE = "write=Overwrite())"
NOT_NULL = "from lakehouse.iceberg.rules.rows import not_null\n"
REFUSING = 'write=Overwrite(), rules=[not_null("id")], quarantine_name="silver.b")'
REFERENCES = "from lakehouse.iceberg.rules.unique_and_references import references\n"
RULE = 'rules=[references("id", "silver.aa")], write=Overwrite())'
PEOPLE = 'write=Overwrite(), subject="id")'


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"a": table("a"), "mine": table("a")},
            r"^silver\.a is declared twice, in some_assets\.a and in some_assets\.mine; exp",
        ),
        (
            {"a": "import nowhere"},
            r"^some_assets/a\.py:1 cannot be imported: ModuleNotFoundError: No module named",
        ),
        (
            {"a": table("a"), "b": table("b", reads="silver.aa")},
            r"^silver\.b: input given is silver\.aa, which nothing declares; did you mean silver\.a\?",
        ),
        (
            {"a_gold": "import some_assets.b_silver", "b_silver": "A = 1\nB = (\n"},
            r"^some_assets/b_silver\.py:2 cannot be imported: SyntaxError: '\(' was never closed",
        ),
        (
            {"a": NOT_NULL + table("a").replace(WRITE, REFUSING), "b": table("b")},
            r"^silver\.b is declared in some_assets\.b, and is the quarantine of silver\.a too",
        ),
        (
            {"a": table("a"), "b": SECOND},
            r"^silver\.a is computed twice, in some_assets\.a and in some_assets\.b;",
        ),
        (
            {"a": table("a"), "b": REFERENCES + table("b").replace(WRITE, RULE)},
            r"reads silver\.aa, which nothing declares; did you mean silver\.a\?",
        ),
        (
            {"a": table("a").replace(WRITE, PEOPLE), "b": table("b")},
            r"^silver\.b has id \(the subject in silver\.a\), and declares no",
        ),
    ],
    ids=[
        *("table declared twice", "no such module", "undeclared input", "syntax error"),
        *("quarantine's name", "two functions", "undeclared table in a rule", "no subject"),
    ],
)
def test_a_declaration_that_cannot_be_right_is_named(
    package: Write, modules: Mapping[str, str], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        found = modules_of(package(modules))
        declared_tables(found)
        declared_assets(found)


def test_a_table_that_is_made_elsewhere_may_be_read(package: Write) -> None:
    made_elsewhere = "import dagster as dg\nELSEWHERE = dg.AssetSpec(['bronze', 'theirs'])"
    modules = modules_of(
        package({"a": table("a", reads="bronze.theirs"), "elsewhere": made_elsewhere})
    )
    assert len(declared_assets(modules)) == 2
