"""Each module of this folder runs in CI, or the table in CONTRIBUTING.md says in which test its small
form is, or why there is none.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse_tests.docs.markdown import ROOT

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parent
MODULES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in FOLDER.glob("test_*.py")
    # It names the mark itself.
    if path != Path(__file__)
}
LINES = re.findall(
    r"^\| `(test_\w+)` \| (.+) \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def soaked() -> set[str]:
    """Return the modules some of whose tests `make soak` alone runs."""
    return {name for name, text in MODULES.items() if "mark.soak" in text}


def names_in_ci() -> set[str]:
    """Return the modules that have tests which CI runs, and these tests."""
    names = set()
    for module, text in MODULES.items():
        tests = set(_tests_in_ci(ast.parse(text)))
        names |= tests | ({module} if tests else set())
    return names


def _tests_in_ci(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if re.match(r"pytestmark = .*mark\.soak", ast.unparse(node)):
            return
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = {ast.unparse(mark) for mark in node.decorator_list}
            if not marks & {"pytest.mark.soak", "SOAK"}:
                yield node.name


def test_the_table_has_a_line_for_each_module_with_tests_that_soak_alone_runs():
    assert [name for name, _ in LINES] == sorted(soaked())


@pytest.mark.parametrize(("module", "form"), LINES, ids=[name for name, _ in LINES])
def test_a_small_form_is_a_test_that_ci_runs_or_there_is_a_reason(module, form):
    if form.startswith("none: "):
        assert len(form) > len("none: ")
        return
    named = {*re.findall(r"`(test_\w+)`", form)}
    if form.startswith("itself"):
        named.add(module)

    assert named and named <= names_in_ci()
