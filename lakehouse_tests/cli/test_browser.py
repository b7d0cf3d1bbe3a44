"""The Dagster UI in a real browser: what people see of the lineage, a materialization and a check that fails."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse.settings import Settings
from lakehouse_tests.cli.live import SECONDS, Live
from lakehouse_tests.processes import wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IS_REQUIRED = bool(os.environ.get("REQUIRE_BROWSER"))
EXPANDED = ",".join(f"global@global:{layer}" for layer in ("bronze", "silver", "gold"))
FAILING = "excluded_fruit_in_any_spelling"
SIZE = {"width": 1600, "height": 1000}


@pytest.fixture
def page() -> "Iterator[Page]":
    """A page of a headless Chromium."""
    if BROWSER is None and not IS_REQUIRED:
        pytest.skip("There is no Chromium here; Debian's package chromium brings one.")
    assert BROWSER, "REQUIRE_BROWSER is set, and there is no Chromium."
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        browser.close()


def test_people_see_lineage_materializations_and_checks(
    settings: Settings, started, page: "Page", tmp_path: Path
) -> None:
    live = Live(settings, started)
    live.start()
    live.drop(tmp_path, "1.csv", "1,Apple,false")
    live.wait_for_fruits(1)
    live.drop(tmp_path, "2.csv", "2,banana,false")
    wait_for(lambda: "FAILURE" in live.statuses(), "the refusal", SECONDS)
    url = f"http://127.0.0.1:{live.port}"
    page.set_default_timeout(SECONDS * 1000)

    # The layers, then the tables in them: an edge for each table that is computed from another, or filled by it.
    edges = page.locator("svg path[marker-end]")
    for address, count in ((url + "/asset-groups", 2), (f"{url}/asset-groups?expanded={EXPANDED}", 6)):
        page.goto(address)
        edges.nth(count - 1).wait_for(state="attached")
        assert edges.count() == count
    for layer in ("bronze", "silver", "gold"):
        assert page.get_by_text(layer, exact=True).count()

    before = len(live.statuses())
    page.goto(f"{url}/assets/bronze/raw_fruits")
    page.get_by_role("button", name="Materialize").first.click()
    wait_for(lambda: len(live.statuses()) > before, "the run that the button starts", SECONDS)
    wait_for(lambda: live.statuses()[-1] == "SUCCESS", "its end", SECONDS)

    page.goto(f"{url}/assets/silver/fruits?view=checks")
    page.get_by_text(FAILING).first.click()
    page.get_by_text("no spelling of a fruit that is left out remains: 1 of 1 rows").first.wait_for()
    page.get_by_text("failed_rows").first.wait_for()
    assert page.get_by_text("banana").count()
    assert page.get_by_text("refused_").count()
