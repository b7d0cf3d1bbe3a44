"""The reference tells of all that asset files import, as the code is now."""

import pytest

from lakehouse_tests.docs import commands
from lakehouse_tests.docs.markdown import ROOT, blocks
from lakehouse_tests.docs.reference import COMMAND, PAGE, page, public_names, untold
from lakehouse_tests.docs.source import imports_of, told

pytestmark = pytest.mark.unit

PUBLIC = [*public_names()]
OWN = ("audit", "monitoring")
"""Layers of the lakehouse itself."""


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        f"docs/reference.md is older than the code; `{COMMAND}` writes it anew"
    )


def test_the_page_of_commands_is_what_their_help_says():
    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), (
        f"docs/commands.md is older than the code; `{COMMAND}` writes it anew"
    )


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda value: value)
def test_something_is_said_of_each_name_and_parameter(module, name):
    one = told(module, name)
    assert one.doc.paragraphs
    assert untold(one) == []


@pytest.mark.parametrize(
    "path", [*(ROOT / "lakehouse/assets").rglob("*.py")], ids=lambda p: p.stem
)
def test_it_tells_of_all_that_the_samples_import(path):
    if path.parent.name not in OWN:
        assert _imported(path.read_text(encoding="utf-8")) <= {*PUBLIC}


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=lambda path: path.stem
)
def test_it_tells_of_all_that_the_pages_import(path):
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "python":
            assert _imported(block.text) <= {*PUBLIC}


def _imported(text: str) -> set[tuple[str, str]]:
    own = "lakehouse.assets"
    return {(module, name) for module, name in imports_of(text) if not module.startswith(own)}
