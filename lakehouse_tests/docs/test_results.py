"""The page of all results lists the missed targets, and each benchmark uses its targets."""

import re
from pathlib import Path

import pytest

from benchmarks.results_index import INDEX, RESULTS, index_of, write_index
from benchmarks.targets import TARGETS_FILE

_RESULT = """Measured on 2026-11-26 at 0123abc+; the load was 0.4 on 2 cores when it began.

## To open one

| way | ratio | requested | enforced |
|---|--:|--:|--:|
| by key | 3.00 | 1 (missed) | 2 (missed) |
| by code | 1.50 | 1 (missed) | 2 |
"""


@pytest.mark.unit
def test_missed_targets_are_read_from_a_result(tmp_path: Path) -> None:
    (tmp_path / "doors.md").write_text(_RESULT, encoding="utf-8")
    write_index(tmp_path)
    write_index(tmp_path)
    results, enforced, requested = (tmp_path / INDEX).read_text().split("## Missed ")
    assert "| [doors](doors.md) | 2026-11-26 | 0123abc+ | 0.4 | 1 of 2 |" in results
    assert "| [doors](doors.md) | To open one: by key | 3.00 | 2 |" in enforced
    assert "by code" not in enforced
    assert "| [doors](doors.md) | To open one: by code | 1.50 | 1 |" in requested


@pytest.mark.unit
def test_the_page_lists_each_result_and_each_missed_target() -> None:
    results = [path for path in RESULTS.glob("*.md") if path.name != INDEX]
    page = (RESULTS / INDEX).read_text(encoding="utf-8")
    assert page == index_of(results), "write it again: python -m benchmarks.results_index"


@pytest.mark.unit
def test_each_benchmark_uses_its_targets() -> None:
    used = set()
    for path in TARGETS_FILE.parent.glob("*.py"):
        source = path.read_text(encoding="utf-8")
        names = re.findall(r'TARGETS\["(.+?)"\]', source)
        for benchmark in re.findall(r'targets_of\("(\w+)"\)', source):
            used |= {f"{benchmark},{name}" for name in names}
    _, *rows = TARGETS_FILE.read_text(encoding="utf-8").splitlines()
    assert used == {",".join(row.split(",")[:2]) for row in rows}
