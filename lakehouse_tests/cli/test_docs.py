"""`lakehouse docs` makes the site of a home, and says where it is."""

import webbrowser
from pathlib import Path

import pytest

from lakehouse.definitions import TABLES
from lakehouse_tests.cli.conftest import Lakehouse

pytestmark = pytest.mark.unit


def test_it_says_where_the_site_is_and_how_much_was_written(lakehouse: Lakehouse, home: Path):
    first, second = lakehouse("docs"), lakehouse("docs")
    pages = len(TABLES) + 2

    assert first.out == [f"{home / 'site' / 'index.html'}: {pages} pages, {pages} written"]
    # It says as of when it is.
    assert second.out[0].endswith((f"{pages} pages, 0 written", f"{pages} pages, 1 written"))


def test_it_goes_where_it_is_told_to(lakehouse: Lakehouse, home: Path, tmp_path: Path):
    assert lakehouse("docs", "--out", str(tmp_path / "docs")).code == 0
    assert (tmp_path / "docs" / "tables" / "silver.fruits.html").is_file()
    assert not (home / "site").exists()


def test_the_environment_says_where_it_goes(
    lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LAKEHOUSE_DOCS", str(tmp_path / "here"))
    assert lakehouse("docs").code == 0
    assert (tmp_path / "here" / "index.html").is_file()


def test_other_files_are_refused(lakehouse: Lakehouse, tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine")
    refused = lakehouse("docs", "--out", str(tmp_path))
    assert refused.code == 2
    assert "expected nothing there, or such a site" in refused.err[0]


def test_a_browser_opens_it(lakehouse: Lakehouse, home: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    assert lakehouse("docs", "--open").code == 0
    assert opened == [(home / "site" / "index.html").as_uri()]


def test_without_a_browser_it_says_what_to_open(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    ran = lakehouse("docs", "--open")
    assert ran.code == 1
    assert "No browser was found; open " in ran.err[0]
