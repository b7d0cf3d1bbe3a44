"""The tests that `make test-changed` selects."""

from pathlib import Path

import pytest

from lakehouse_tests.changed import reached_tests

pytestmark = pytest.mark.unit


def test_a_module_selects_the_tests_that_import_it() -> None:
    tests = reached_tests([Path("lakehouse/cli/tables/status.py")])
    assert "lakehouse_tests/cli/test_status_trend.py" in tests
    assert not any(test.startswith("lakehouse_tests/tables/") for test in tests)


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("docs/rules.md", ["lakehouse_tests/docs"]),
        ("requirements.lock", ["lakehouse_tests"]),
        ("lakehouse_tests/tables/test_casts.py", ["lakehouse_tests/tables/test_casts.py"]),
    ],
)
def test_a_page_a_lock_file_and_a_test_select_their_own(changed: str, tests: list[str]) -> None:
    assert reached_tests([Path(changed)]) == tests
