"""A check that failed last, and of which nobody looked at all rows, stays as it was, and a warning
says so.
"""

from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from lakehouse.iceberg.metadata.write_result import RuleResult, Unchanged
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.orchestration import table_asset
from lakehouse.orchestration.asset_checks import Evaluated
from lakehouse.orchestration.table_asset import Written, _with_full_checks
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit

RULE = not_null("id")
TABLE = IcebergTable(
    "gold.figures", "Figures.", [Column("id", "bigint")], Overwrite(), rules=[RULE]
)


def context(warnings: list[str]) -> Any:
    """Return a run that keeps what it warns of."""
    return SimpleNamespace(
        instance=None,
        run=SimpleNamespace(run_id="r1"),
        log=SimpleNamespace(warning=warnings.append),
    )


@pytest.mark.parametrize("main", [2, 3], ids=["as it was", "moved since"])
def test_what_a_job_tells_counts_for_the_snapshot_that_it_looked_at(
    monkeypatch: pytest.MonkeyPatch, main: int
) -> None:
    monkeypatch.setattr(table_asset, "need_full_check", lambda *_: {RULE.name})
    warnings: list[str] = []
    io: Any = SimpleNamespace(evaluate=lambda *_: ([], Evaluated("main", main)))
    told = (RuleResult(RULE, 1, 9),)
    written = Written(Unchanged(TABLE.name, "", 2), all_rows=told)
    check = dg.AssetCheckResult(passed=True, check_name=RULE.name)
    results, _ = _with_full_checks(context(warnings), io, TABLE, written, [check], {})
    assert [result.passed for result in results] == ([False] if main == 2 else [])
    assert bool(warnings) == (main != 2)


def test_a_check_that_failed_while_a_job_went_on_stays_as_it_was_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_asset, "need_full_check", lambda *_: {RULE.name})
    warnings: list[str] = []
    io: Any = SimpleNamespace(evaluate=lambda *_: ([], None))
    written = Written(Unchanged(TABLE.name, "", None), all_rows=())
    check = dg.AssetCheckResult(passed=True, check_name=RULE.name)
    results, _ = _with_full_checks(context(warnings), io, TABLE, written, [check], {})
    assert results == []
    assert warnings == [
        f"gold.figures: {RULE.name} failed last, and all rows were not looked at."
        " `lakehouse check gold.figures` does."
    ]
