"""The page of all benchmarks' results says what they say."""

from pathlib import Path

import pytest

from benchmarks.results_index import INDEX, RESULTS, Promise, index_of, promises_of, write_index

_RESULT = """# doors

Measured on 2026-11-26 at 0123abc+; the load was 0.4 on 2 cores when it began.

## To open one

| way | median s | min s | max s | ratio | promised |
|---|--:|--:|--:|--:|--:|
| by hand | 1.00 | 1.00 | 1.00 | 1.00 |  |
| by key | 3.00 | 3.00 | 3.00 | 3.00 | 2.00 (broken) |

## Bytes

| | ratio | promised |
|---|--:|--:|
| of the key | 0.100 | 0.50 |

## Keys

| key | MB |
| --- | --: |
| small | 1.5 |
"""


@pytest.mark.unit
def test_what_is_promised_is_read_from_a_result(tmp_path: Path) -> None:
    assert list(promises_of(_RESULT)) == [
        Promise("To open one", "by key", "3.00", "2.00", is_met=False),
        Promise("Bytes", "of the key", "0.100", "0.50", is_met=True),
    ]
    (tmp_path / "doors.md").write_text(_RESULT, encoding="utf-8")
    write_index(tmp_path)
    write_index(tmp_path)
    page = (tmp_path / INDEX).read_text(encoding="utf-8")
    assert "| [doors](doors.md) | 2026-11-26 | 0123abc+ | 0.4 | 1 of 2 |" in page
    assert "| [doors](doors.md) | To open one: by key | 3.00 | 2.00 |" in page


@pytest.mark.unit
def test_the_page_has_each_result_and_each_promise_that_does_not_hold() -> None:
    results = [path for path in RESULTS.glob("*.md") if path.name != INDEX]
    assert (RESULTS / INDEX).read_text(encoding="utf-8") == index_of(results), (
        "write it anew: python -m benchmarks.results_index"
    )
