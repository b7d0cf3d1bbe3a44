"""`lakehouse docs` makes the site of a home, and says where it is."""

import re
import webbrowser
from pathlib import Path

import pytest

from lakehouse.definitions import TABLES
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records

unit = pytest.mark.unit


@pytest.mark.long
@unit
def test_it_says_where_the_site_is_and_how_much_was_written(lakehouse: Lakehouse, home: Path):
    first, second = lakehouse("docs"), lakehouse("docs")
    quarantines = [table for table in TABLES.values() if table.quarantine]
    # A page for each table, and a contract for each that is no quarantine.
    files = 2 + len(TABLES) + len(TABLES) - len(quarantines)

    assert first.out == [f"{home / 'site' / 'index.html'}: {files} files, {files} written"]
    # It says as of when it is.
    assert second.out[0].endswith((f"{files} files, 0 written", f"{files} files, 1 written"))


@unit
def test_it_goes_where_it_is_told_to(lakehouse: Lakehouse, home: Path, tmp_path: Path):
    assert lakehouse("docs", "--out", str(tmp_path / "docs")).code == 0
    assert (tmp_path / "docs" / "tables" / "silver.fruits.html").is_file()
    assert not (home / "site").exists()


@unit
def test_the_environment_says_where_it_goes(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LAKEHOUSE_DOCS", str(tmp_path / "here"))
    assert lakehouse("docs").code == 0
    assert (tmp_path / "here" / "index.html").is_file()


@unit
def test_other_files_are_refused(lakehouse: Lakehouse, tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine")
    refused = lakehouse("docs", "--out", str(tmp_path))
    assert refused.code == 2
    assert "expected nothing there, or such a site" in refused.err[0]


@unit
def test_a_browser_opens_it(lakehouse: Lakehouse, home: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    assert lakehouse("docs", "--open").code == 0
    assert opened == [(home / "site" / "index.html").as_uri()]


@unit
def test_without_a_browser_it_says_what_to_open(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    ran = lakehouse("docs", "--open")
    assert ran.code == 1
    assert "No browser was found; open " in ran.err[0]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark", "sample_fruits")
def test_after_a_run_the_page_of_a_table_has_its_rows_and_results(
    lakehouse: Lakehouse, home: Path
):
    assert lakehouse("docs").code == 0
    page = (home / "site" / "tables" / "silver.fruits.html").read_text(encoding="utf-8")
    results = re.findall(r'<span class="badge \w*">(\w+)</span>', page)
    trends = {
        one["table"]: one for one in records(lakehouse("status", "--trend", "--format", "json"))
    }

    assert "<dt>Rows</dt><dd>155</dd>" in page
    assert results.count("passed") == len(TABLES["silver.fruits"].rules) + 2
    assert trends["silver.fruits"]["rows"][-1][1] == 155
    assert [share for _, share in trends["silver.fruits"]["failed_share"]] == [0.0]
