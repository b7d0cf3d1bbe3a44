"""A headless Chromium, and pictures of what people see in it.

Where there is no Chromium its tests are skipped, unless REQUIRE_BROWSER is set. SCREENS names a
folder that keeps the pictures, as `make screens` does.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
IS_REQUIRED = bool(os.environ.get("REQUIRE_BROWSER"))
_BLANK_PICTURE_BYTES = 10_000
_TROUBLE = re.compile(r"unexpected error|graphql|traceback|undefined|\bnan\b", re.IGNORECASE)


def find_browser() -> str:
    """Return where Chromium is; skip the test where there is none."""
    if BROWSER is None and not IS_REQUIRED:
        pytest.skip("There is no Chromium here; Debian's package chromium brings one.")
    assert BROWSER, "REQUIRE_BROWSER is set, and there is no Chromium."
    return BROWSER


@contextmanager
def open_browser() -> "Iterator[Browser]":
    """Open a headless Chromium; skip the test where there is none."""
    path = find_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def take_picture(page: "Page", name: str, other_folder: Path) -> None:
    """Take a picture of what is to be seen, of which nothing may say that something is wrong.

    :param other_folder: where it goes unless SCREENS names a folder.
    """
    page.wait_for_load_state("networkidle")
    trouble = _TROUBLE.search(page.inner_text("body"))
    assert trouble is None, f"{name} says {trouble[0]}"
    picture = Path(os.environ.get("SCREENS") or other_folder) / f"{name}.png"
    page.screenshot(path=picture, animations="disabled", caret="hide")
    assert picture.stat().st_size > _BLANK_PICTURE_BYTES, f"{name} shows nothing"
