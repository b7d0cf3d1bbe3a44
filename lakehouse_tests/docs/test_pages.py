"""Runs the commands and Python blocks of the pages, and compares their output."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from inspect import isfunction
from typing import Any

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.iceberg.rules import (
    aggregate_rules,
    reconciliation,
    rows,
    size_schema_and_freshness,
    unique_and_references,
)
from lakehouse.ingestion.read_delivered import read_delivered
from lakehouse.orchestration.asset_specs import inputs_of
from lakehouse.orchestration.partitions.partition_bounds import table_partitions
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.number_and_date_forms import blank_as_null, decimal_comma
from lakehouse.tables.rows_of import SOURCE_OF_ROW
from lakehouse_tests.docs.markdown import ROOT, blocks, sections

PAGES = sorted(
    path.relative_to(ROOT) for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
)
MOST_PICTURE_BYTES = 150_000
MOST_README_WORDS = 900
README = (ROOT / "README.md").read_text(encoding="utf-8")
RULES = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
TABLES = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")


def names_of_block(page: str, word: str) -> dict[str, Any]:
    """Run the block of a page that is marked by a word, and return its names."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (block,) = (block for block in blocks(text) if not word or word in block.words)
    names: dict[str, Any] = {}
    exec(block.text, names)
    return names


@pytest.mark.scenario
@pytest.mark.spark
def test_the_tutorial_prints_what_it_shows(page, clone):
    page("docs/tutorial.md").do()

    assert not (clone / ".tutorial").exists()


@pytest.mark.long
@pytest.mark.spark
def test_own_files_become_tables_as_the_page_says(page, clone):
    page("docs/your-data.md").do()

    assert not (clone / "shop").exists()


@pytest.mark.long
@pytest.mark.spark
def test_formats_and_rows_of_an_api_go_as_the_page_says(page, settings, tmp_path, monkeypatch):
    formats = page("docs/formats.md")
    formats.do()

    rows = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    for name in ("orders", "rates"):
        (tmp_path / name).write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setitem(formats.names, "API", tmp_path.as_uri())
    asset = formats.names["orders_from_api"]
    assert dg.materialize([asset], resources={"settings": settings}).success
    (file,) = (settings.home / "inbox" / "orders").iterdir()
    feed = Feed("orders", ["id", "name"], "bronze.orders", formats="jsonl")
    assert [row["id"] for row in read_delivered(feed, file, 9).rows.to_pylist()] == ["1", "2"]
    assert formats.names["rates"]().to_dict("records") == rows


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    "names",
    [
        ["merges"],
        ["partitions"],
        ["personal-data"],
        ["trying"],
        ["lineage"],
        ["operations", "monitoring", "upkeep"],
    ],
    ids=" ".join,
)
def test_a_how_to_goes_as_the_page_says(page, names):
    for name in names:
        page(f"docs/{name}.md").do()


@pytest.mark.long
@pytest.mark.unit
def test_tables_and_files_are_in_aws_as_the_page_says(
    page_without_spark, clone, aws_settings, monkeypatch
):
    monkeypatch.setenv("LAKEHOUSE_HOME", str(clone / ".lakehouse"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_settings.endpoint_url)
    page_without_spark("docs/deploying.md").do()

    assert Catalog.of(aws_settings).has("silver.fruits")
    keys = [stored.key for stored in open_store(aws_settings).objects("")]
    assert "inbox/fruits/fruit.csv" in keys
    assert any(key.startswith("warehouse/silver.db/fruits-") for key in keys)
    assert not (clone / ".lakehouse" / "warehouse").exists()


@pytest.mark.unit
def test_the_unit_of_systemd_is_one(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not on this machine")
    text = (ROOT / "deploy" / "lakehouse.service").read_text(encoding="utf-8")
    unit = tmp_path / "lakehouse.service"
    # What it starts is not installed here.
    command = "/opt/lakehouse/.venv/bin/lakehouse"
    assert command in text
    unit.write_text(text.replace(command, sys.executable), encoding="utf-8")

    done = subprocess.run(
        [analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


@pytest.mark.unit
def test_the_index_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", index))
    assert linked == {path.name for path in PAGES if path.name != "README.md"}


@pytest.mark.long
@pytest.mark.spark
def test_the_tests_on_the_page_of_trying_pass(try_table):
    names = names_of_block("trying", "tests")
    tests = [test for name, test in names.items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test(try_table)


@pytest.mark.long
@pytest.mark.spark
def test_a_person_is_erased_as_the_page_says(page, clone):
    page("docs/erasure.md").do()

    files = [file for file in (clone / ".erasure").rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if b"customer1000131@" in file.read_bytes()]


@pytest.mark.scenario
@pytest.mark.spark
def test_the_readme_shows_what_the_demo_leaves(page):
    readme = page("README.md")
    assert readme.execute("lakehouse demo").code == 0
    readme.do()
    page("docs/engines.md").do()


@pytest.mark.long
@pytest.mark.unit
def test_the_site_is_made_as_the_page_says(page_without_spark, clone, monkeypatch):
    monkeypatch.setenv("LAKEHOUSE_HOME", str(clone / ".lakehouse"))
    page_without_spark("docs/site.md").do()

    assert (clone / "shared/tables/tables/silver.fruits.html").is_file()


@pytest.mark.long
@pytest.mark.unit
def test_contracts_are_as_the_page_says(page_without_spark):
    page_without_spark("docs/contracts.md").do()


@pytest.mark.unit
def test_the_declaration_of_the_readme_is_one():
    names = names_of_block("../README", "declaration")
    table = names["ORDERS"]
    assert plan(table, None).describe() == ["create the table with 4 columns"]
    assert (table.subject, table.personal_columns) == ("customer_id", {"email"})
    assert {key.path[-1] for key in names["orders"].keys} == {"orders"}
    # The file runs by itself: each input is computed in it.
    assert set(names["orders"].dependency_keys) <= set(names["raw_orders"].keys)


@pytest.mark.unit
def test_the_declaration_of_the_versions_is_one():
    names = names_of_block("versions", "")
    (spec,) = names["visits"].specs
    assert [
        (read.mode, read.table, read.by, read.outside)
        for read in inputs_of(spec.metadata).values()
    ] == [
        ("incremental", "bronze.visits", "visit_date", False),
        ("incremental", "bronze.visits", "visit_date", True),
        ("existing_rows", "silver.visits", "day", False),
        ("existing_rows", "silver.visits", "day", True),
    ]


@pytest.mark.unit
def test_the_declarations_of_the_page_on_tables_are_some():
    names = names_of_block("tables", "declaration")
    assert names["VISITS"].partitioning == ("days(day)",)
    assert [*names["VISITS"].casts] == ["visit_id", "day", "written_at"]
    assert names["VISITS"].column_names[-4:] == SOURCE_OF_ROW
    assert names["visits_by_month"].partitions_def == table_partitions(names["MONTHS"])
    (spec,) = names["shops"].specs
    assert [read.mode for read in inputs_of(spec.metadata).values()] == [
        "changed_keys",
        "latest",
    ]


@pytest.mark.unit
def test_the_query_of_the_page_on_tables_is_a_function(tmp_path, monkeypatch):
    for block in blocks(TABLES):
        if "query" in block.words:
            suffix = {"python": "py", "sql": "sql"}[block.language]
            (tmp_path / f"sales_daily.{suffix}").write_text(block.text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    asset = importlib.import_module("sales_daily").sales_daily
    monkeypatch.delitem(sys.modules, "sales_daily")
    (spec,) = asset.specs
    assert spec.description == "How many sales each day had."
    assert spec.code_version
    assert [read.by for read in inputs_of(spec.metadata).values()] == ["sold_day"]


@pytest.mark.spark
def test_dates_and_numbers_are_brought_into_form_as_the_page_says(spark):
    names = names_of_block("tables", "forms")
    delivered = spark.createDataFrame(
        [("31.12.2026", "1004,50", "1.004", "1,004.50"), ("2026-12-31", "x", "5", "7")],
        ["sold_on", "Netto EUR", "gross", "points"],
    )

    (months,) = re.findall(r'`expr\("(.*MMM.*?)"\)`', TABLES)
    months = months.replace("sold_on", "'5 Jul 2026'")
    assert spark.sql(f"SELECT {months}").collect()[0][0] == "2026-07-05"

    (beside,) = re.findall(r"decimal_comma\((\"translate.*?\")\)", TABLES)
    beside = decimal_comma(beside.strip('"').replace("net", "'1 004,50 €'"))
    assert spark.sql(f"SELECT {beside}").collect()[0][0] == "1004.50"

    nothing = (blank_as_null(value, "NA", "-") for value in ("' \u00a0'", "' NA '", "' x'"))
    assert tuple(spark.sql(f"SELECT {', '.join(nothing)}").collect()[0]) == (None, None, " x")

    rows = names["in_form"](delivered).select("sold_on", "net", "gross", "points").collect()
    assert [tuple(row) for row in rows] == [
        ("2026-12-31", "1004.50", "1004", "1004.50"),
        ("2026-12-31", "x", "5", "7"),
    ]


@pytest.mark.unit
@pytest.mark.parametrize(
    "module",
    [rows, unique_and_references, aggregate_rules, reconciliation, size_schema_and_freshness],
    ids=lambda module: module.__name__,
)
def test_every_rule_is_told_of_where_it_is_imported_from(module):
    (part,) = (part for part in RULES.split("\n## ") if f"`{module.__name__}`" in part)
    made = {
        name
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__
    }
    assert set(re.findall(r"^\| `(\w+)\(", part, re.MULTILINE)) == {
        name for name in made if not name.startswith("_")
    }


@pytest.mark.unit
def test_the_readme_is_short():
    assert len(README.split()) <= MOST_README_WORDS


@pytest.mark.unit
def test_the_page_of_settings_lists_every_setting():
    files = [
        ROOT / "lakehouse" / name
        for name in ("settings/__init__.py", "settings/cluster_settings.py")
    ]
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    read = set(re.findall(r'env(?:\.get\(|, )"([A-Z_]+)"', source)) - {"PATH"}
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z][A-Z_]+)`", page))
    assert read <= named
    assert {name for name in named if name.startswith("LAKEHOUSE_")} <= read


@pytest.mark.unit
def test_the_layout_in_the_readme_names_every_folder():
    cells = re.findall(r"^\| (`.+?) \|", README.split("## Layout")[1], re.MULTILINE)
    named = set(re.findall(r"`(?:lakehouse/)?(\w+)/`", " ".join(cells)))
    folders = {path.parent.name for path in (ROOT / "lakehouse").glob("*/__init__.py")}
    assert named == folders | {"lakehouse_tests"}


@pytest.mark.unit
@pytest.mark.parametrize("path", PAGES, ids=str)
def test_links_between_pages_lead_somewhere(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    targets = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert [
        target for target in targets if not (ROOT / path).parent.joinpath(target).exists()
    ] == []


@pytest.mark.unit
@pytest.mark.parametrize("path", PAGES, ids=str)
def test_links_lead_to_headings_that_exist(path):
    links = re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", (ROOT / path).read_text(encoding="utf-8"))
    targets = [
        ((ROOT / path).parent / file if file else ROOT / path, anchor)
        for file, anchor in links
        if "://" not in file
    ]
    assert [
        f"{file.name}#{anchor}" for file, anchor in targets if anchor not in _anchors(file)
    ] == []


@cache
def _anchors(page):
    return {
        re.sub(r"[^\w\- ]", "", section.title.lower()).replace(" ", "-")
        for section in sections(page)
    }


@pytest.mark.unit
def test_every_picture_is_shown_and_small():
    shown: set[str] = set()
    for path in PAGES:
        text = (ROOT / path).read_text(encoding="utf-8")
        shown |= set(re.findall(r"!\[[^]]+\]\((?:docs/)?images/([^)]+)\)", text))
    pictures = {path.name: path.stat().st_size for path in (ROOT / "docs/images").iterdir()}
    assert set(pictures) == shown
    assert [name for name, size in pictures.items() if size > MOST_PICTURE_BYTES] == []
