"""`lakehouse docs` makes the site of a home, and says where it is."""

import webbrowser
from pathlib import Path

import pytest

from lakehouse.definitions import TABLES
from lakehouse_tests.cli.conftest import Lakehouse

unit = pytest.mark.unit


@pytest.mark.long
@unit
def test_it_says_where_the_site_is_and_how_much_was_written(lakehouse: Lakehouse, home: Path):
    first, second = lakehouse("docs"), lakehouse("docs")
    quarantines = [table for table in TABLES.values() if table.quarantine]
    # The index, a page for each table, and a contract for each that is no quarantine.
    files = 1 + len(TABLES) + len(TABLES) - len(quarantines)

    assert first.out == [f"{home / 'site' / 'index.html'}: {files} files, {files} written"]
    # It says as of when it is.
    assert second.out[0].endswith((f"{files} files, 0 written", f"{files} files, 1 written"))


@unit
def test_it_goes_where_it_is_told_to(lakehouse: Lakehouse, home: Path, tmp_path: Path):
    assert lakehouse("docs", "--out", str(tmp_path / "docs")).code == 0
    assert (tmp_path / "docs" / "tables" / "silver.fruits.html").is_file()
    assert not (home / "site").exists()


@unit
def test_a_browser_opens_it(lakehouse: Lakehouse, home: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    assert lakehouse("docs", "--open").code == 0
    assert opened == [(home / "site" / "index.html").as_uri()]


@unit
def test_without_a_browser_it_says_what_to_open(lakehouse, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    ran = lakehouse("docs", "--open")
    assert ran.code == 1
    assert "No browser was found; open " in ran.err[0]
