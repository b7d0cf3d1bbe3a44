"""Dagster's own command line, `dg`, finds the definitions and has nothing to say against them."""

import os
import subprocess
from pathlib import Path

import pytest

from lakehouse_tests.processes import ROOT

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def dg() -> Path:
    """The program that `.ci/dg` installs; skips where nobody did."""
    program = ROOT / ".venv-dg" / "bin" / "dg"
    if not program.is_file():
        assert not os.environ.get("REQUIRE_DG"), ".ci/dg has not run."
        pytest.skip("dg is not here; .ci/dg installs it")
    return program


@pytest.mark.parametrize(
    ("command", "says"),
    [
        pytest.param(("check", "defs"), "All definitions loaded successfully.", id="check"),
        pytest.param(("list", "defs"), "fruits", id="list", marks=pytest.mark.long),
    ],
)
def test_the_definitions_are_in_order(
    dg: Path, tmp_path: Path, command: tuple[str, str], says: str
) -> None:
    packages = Path(pytest.__file__).parents[1]
    env = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}",
        "LAKEHOUSE_HOME": str(tmp_path / "home"),
    }
    ran = subprocess.run(
        [dg, *command], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert says in ran.stdout
    superseded = [line for line in ran.stderr.splitlines() if "superseded" in line.lower()]
    assert not superseded
