"""Pages are complete and escaped, and their links work."""

import posixpath
import re
import tomllib
from dataclasses import replace
from fnmatch import fnmatch
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from lakehouse.site import pages
from lakehouse.site.facts import SiteFacts, TableFacts
from lakehouse.site.pages import INDEX, contract_of, make_pages, page_of
from lakehouse.tables.table import Column
from lakehouse_tests.site.conftest import ADA, ORDERS, RAW, read

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "lakehouse" / "site" / "templates"
VOID = {"meta", "link", "br", "wbr", "path", "rect", "circle", "line"}


class Read(HTMLParser):
    """What a browser would find in a page; a tag that is not closed is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append(tag)
        self.ids += [named["id"]] if "id" in named else []
        if tag == "a":
            self.links.append(named["href"])
        self.addresses += [named[name] for name in ("src", "href", "action") if name in named]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def html_pages(facts):
    pages = make_pages(facts).items()
    return {name: text for name, text in pages if name.endswith(".html")}


def test_a_page_links_to_its_contract(facts):
    pages = make_pages(facts)
    path = contract_of(ORDERS.name)
    promised = yaml.safe_load(pages[path])

    assert promised["schema"][0]["physicalName"] == ORDERS.name
    assert f"../{path}" in Read(pages[page_of(ORDERS.name)]).links
    assert ORDERS.quarantine and contract_of(ORDERS.quarantine.name) not in pages


def test_every_link_works(facts):
    files = make_pages(facts)
    pages = {name: Read(text) for name, text in html_pages(facts).items()}

    for name, page in pages.items():
        for link in page.links:
            target, _, place = link.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            assert (path if target else name) in files, f"{name}: {link}"
            assert not place or place in pages[path if target else name].ids


def test_pages_have_no_scripts_and_load_nothing(facts):
    for text in html_pages(facts).values():
        page = Read(text)
        assert "script" not in page.tags
        assert not [one for one in page.addresses if "//" in one or one.startswith("/")]
        assert "url(" not in text.replace("url(#head)", "")


def test_no_page_has_personal_values(facts):
    for text in make_pages(facts).values():
        assert ADA not in text
        assert "ada.lovelace" not in text


def test_text_is_escaped(facts):
    text = make_pages(facts)[page_of(ORDERS.name)]

    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\u202e" not in text
    assert "\\u202e\\u0007" in text


@pytest.mark.long
def test_the_same_state_gives_the_same_pages(lake, source, now):
    assert make_pages(read(lake, source, now)) == make_pages(read(lake, source, now))


def test_only_the_index_states_the_time(facts):
    pages = make_pages(facts)
    later = make_pages(replace(facts, now=facts.now.replace(microsecond=1)))

    assert [name for name in pages if pages[name] != later[name]] == ["index.html"]


def test_a_page_has_the_content_of_its_table(facts):
    text = Read(make_pages(facts)[page_of(ORDERS.name)]).text

    for content in (
        "shop@example.org",
        "identifies a person",
        "accepted_state",
        "2 of 8",
        "Late after",
        "a check failed",
        "silver.orders_quarantine",
        "catalog.load_table('silver.orders')",
    ):
        assert content in text


def test_lineage_links_to_sources(facts):
    page = Read(make_pages(facts)[page_of(ORDERS.name)])

    assert f"../{page_of(RAW.name)}" in page.links
    assert "feed orders" in page.text


def test_layers_are_in_the_order_of_lineage(now):
    sources = {"silver.a": ["bronze.a"], "silver.a_quarantine": ["silver.a"]}
    sources |= {"gold.a": ["silver.a"], "audit.a": [], "bronze.a": ["feed a"]}
    tables = {name: TableFacts(name, None) for name in sources}
    index = make_pages(SiteFacts("L", now, tables, sources=sources))[INDEX]

    layers = re.findall("<h2>(.*)</h2>", index)
    assert layers[:4] == ["bronze", "silver", "gold", "audit"]


def test_many_related_tables_are_reduced_to_neighbours(facts, monkeypatch):
    monkeypatch.setattr(pages, "_MOST_DRAWN_TABLES", 2)
    made = make_pages(facts)
    page = Read(made[page_of(ORDERS.name)])

    assert "Only its direct neighbours are shown." in page.text
    assert "feed orders" not in page.text
    assert "svg" not in Read(made["index.html"]).tags


@pytest.mark.parametrize(
    ("uri", "catalog"),
    [(None, "SqlCatalog('lakehouse'"), ("", "load_catalog('lakehouse', type=\"glue\")")],
)
def test_the_query_reads_no_personal_columns(facts, uri, catalog):
    facts = facts if uri is None else replace(facts, catalog_uri=uri)
    text = Read(make_pages(facts)[page_of(ORDERS.name)]).text

    assert catalog in text
    assert "selected_fields=['order_id', 'state']" in text


def test_the_query_prints_rows(facts, capsys):
    (query,) = re.findall(
        r"<code>(from .*?)</code>", make_pages(facts)[page_of(ORDERS.name)], re.S
    )
    exec(unescape(query), {})
    printed = capsys.readouterr().out

    assert "PAID" in printed
    assert ADA not in printed


@pytest.mark.parametrize(
    "name",
    [
        "Silver.Orders",
        "silver.a/../b",
        "silver.é",
        f"silver.{'x' * 200}",
        "silver.a b",
        "con",
        ".",
        "é",
    ],
)
def test_each_name_has_its_own_file(name):
    page = page_of(name)

    assert re.fullmatch(r"tables/[a-z0-9_-][a-z0-9_.-]*\.html", page)
    assert page.isascii()
    assert page == page.lower()
    assert page.count("/") == 1
    assert len(page) < 130
    assert page != page_of(name.lower() + "x")


def test_hostile_names_are_escaped(now):
    column = Column("<b>`\"'{{ 7*7 }}", "string", "</style><img src=x>")
    declared = replace(ORDERS, comment="{% raw %}", columns=[column, *ORDERS.columns])
    hostile = TableFacts('silver.<a href="x">', declared)
    pages = make_pages(SiteFacts("</title><script>", now, {hostile.name: hostile}))

    for text in pages.values():
        assert "<script>" not in text
        assert "<img" not in text
        Read(text)


def test_names_in_backticks_are_set_as_code(now):
    table = TableFacts("silver.a", None, description="Of `x.<b>`, ``y``; a ` stays.")
    pages = make_pages(SiteFacts("Lakehouse", now, {table.name: table}))

    code = "Of <code>x.&lt;b&gt;</code>, <code>y</code>; a ` stays."
    assert code in pages[page_of("silver.a")]


def test_the_wheel_has_the_templates():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    files = [path.name for path in TEMPLATES.glob("*.*") if path.suffix != ".py"]

    assert (TEMPLATES / "__init__.py").is_file()
    assert len(files) == 5
    assert [name for name in files if not any(fnmatch(name, one) for one in patterns)] == []


def test_a_lakehouse_without_a_table_has_an_index(now):
    Read(make_pages(SiteFacts("Empty", now, {}))["index.html"])
