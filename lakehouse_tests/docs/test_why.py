"""What the page on why says of others, where it can be run."""

import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse_tests.docs.markdown import ROOT

_FEW_ROWS = """
from pathlib import Path
from benchmarks import bench_refresh, harness
harness.RESULTS = Path({results!r})
bench_refresh.main(rounds=1, rows=20_000)
"""


@pytest.mark.soak
def test_readers_see_an_empty_view_and_a_whole_table(tmp_path: Path) -> None:
    script = _FEW_ROWS.format(results=str(tmp_path))
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)

    text = (tmp_path / "refresh.md").read_text(encoding="utf-8")
    lines = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if "| yes" in line or "| no" in line
    ]
    view, ours, broken_view, broken_ours = lines
    assert (view[1], broken_view[1], ours[1], broken_ours[1]) == ("yes", "no", "yes", "no")
    assert int(view[4]) > 0
    assert broken_view[6] == "0"
    assert (ours[4], broken_ours[4]) == ("0", "0")
    assert ours[6] == broken_ours[6] == view[6]
