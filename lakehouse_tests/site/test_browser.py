"""The pages in a real browser, from files: nothing is missing, and every link works."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse.site.pages import make_pages, page_of
from lakehouse.site.publish_site import PublicFolder, publish_site
from lakehouse_tests.browser import open_browser
from lakehouse_tests.site.conftest import ORDERS, RAW

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.e2e


@pytest.fixture
def page() -> "Iterator[Page]":
    """A page of a headless Chromium; what it complains of fails the test."""
    complaints: list[str] = []
    with open_browser() as browser:
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        yield page
    assert complaints == []


@pytest.fixture
def index(facts, tmp_path) -> str:
    """The address of a site in a folder."""
    return Path(publish_site(make_pages(facts), PublicFolder(tmp_path), "site/").place).as_uri()


@pytest.mark.scenario
def test_people_come_from_the_index_to_a_table_and_along_its_lineage(page, index, tmp_path):
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(index)
    page.get_by_role("link", name=ORDERS.name, exact=True).first.click()
    assert page.get_by_role("heading", level=1).inner_text() == ORDERS.name
    assert page.locator("svg path.arrow").count() == 3

    page.locator("svg a", has_text="raw_orders").click()
    page.wait_for_url(f"**/{page_of(RAW.name)}")
    page.get_by_role("link", name="Tables", exact=True).click()
    assert page.get_by_role("heading", level=1).inner_text() == "Tables"
    assert all(address.startswith("file://") for address in requested)


@pytest.mark.parametrize("width", [1200, 360])
def test_every_page_fits_wide_and_narrow_screens(page, index, width, tmp_path):
    """Wide tables scroll by themselves, and the page does not."""
    page.set_viewport_size({"width": width, "height": 700})
    for path in (tmp_path / "site").rglob("*.html"):
        page.goto(path.as_uri())
        assert page.locator("h1").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name


def test_text_has_contrast(page, index):
    """WCAG AA requires a contrast of 4.5."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(index)
        low = page.evaluate(CONTRASTS)
        assert low == [], scheme


CONTRASTS = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll('body *')) {
    const has = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!has || element.closest('svg') || element.closest('.skip')) continue;
    const [a, b] = [parse(getComputedStyle(element).color), ground(element)].map(light);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push(`${element.tagName} ${element.className} ${contrast}`);
  }
  return low;
}"""
