"""The fixtures in a project of somebody else, with a session of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

OWN_TEST = """
def test_a_fruit_is_typed(try_table):
    tried = try_table("silver.fruits", [{"id": "1", "fruit": "Apple", "berry": "true"}])

    assert tried.rows == [{"id": 1, "fruit": "Apple", "berry": True}]
"""


@pytest.mark.e2e
def test_a_project_names_the_module_and_no_home_is_made(tmp_path: Path) -> None:
    plugins = 'pytest_plugins = ["lakehouse.testing"]\n'
    (tmp_path / "conftest.py").write_text(plugins, encoding="utf-8")
    (tmp_path / "test_own.py").write_text(OWN_TEST, encoding="utf-8")
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py"],
        cwd=tmp_path,
        env={**os.environ, "LAKEHOUSE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert not home.exists()
