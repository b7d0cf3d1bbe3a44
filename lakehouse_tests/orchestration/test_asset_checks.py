"""What a rule found, as the result of its check."""

from typing import Any

import dagster as dg
import pytest

from lakehouse.iceberg.rules.aggregate_rules import mean
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import row_count
from lakehouse.iceberg.rules.unique_and_references import references
from lakehouse.iceberg.values.write_result import Refused, RuleResult
from lakehouse.orchestration.asset_checks import Evaluated, check_result, check_specs
from lakehouse.orchestration.failure_texts import blocked_failure
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Append, Column, IcebergTable

ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
MAIN = Evaluated("main", 2**60)


def table(*rules: Rule) -> IcebergTable:
    return IcebergTable("silver.t", "", [Column("v", "int")], Append(once_by=()), rules=rules)


def shown(
    rule: Rule, failed_rows: int = 0, value: Any = None, note: str = ""
) -> dg.AssetCheckResult:
    return check_result(
        table(rule), RuleResult(rule, failed_rows, 100, value=value, note=note), MAIN
    )


@pytest.mark.parametrize(
    ("failed_rows", "passed", "severity"),
    [(1, True, ERROR), (3, False, WARN), (6, False, ERROR)],
)
def test_severity_follows_from_which_threshold_is_exceeded(
    failed_rows: int, passed: bool, severity: dg.AssetCheckSeverity
) -> None:
    found = shown(
        not_null("v", on_failure="block", warn_above=0.01, fail_above=0.05), failed_rows
    )
    assert (found.passed, found.severity) == (passed, severity)
    numbers = {
        name: found.metadata[name].value
        for name in ("failed_rows", "total_rows", "threshold", "warn_above")
    }
    assert numbers == {
        "failed_rows": failed_rows,
        "total_rows": 100,
        "threshold": 0.05,
        "warn_above": 0.01,
    }


def test_a_measure_is_shown_as_a_number_with_its_bounds() -> None:
    found = shown(mean("v", 1, 3, warn_outside=(1.5, None)), value=1.25)
    assert (found.passed, found.severity) == (False, WARN)
    assert found.description == "mean of v is at least 1 and at most 3: 1.25."
    numbers = {
        name: found.metadata[name].value for name in ("value", "low", "high", "warn_low")
    }
    assert numbers == {"value": 1.25, "low": 1.0, "high": 3.0, "warn_low": 1.5}


def test_a_check_blocks_where_its_rule_can() -> None:
    rules = [
        not_null("v"),
        not_null("v", fail_above=0.2, name="few_nulls"),
        row_count(1),
        row_count(9, on_failure="warn", name="rows"),
        references("v", "silver.b"),
    ]
    assert {spec.name: spec.blocking for spec in check_specs(table(*rules))} == {
        "not_null_v": False,
        "few_nulls": True,
        "row_count": True,
        "rows": False,
        "references_v": True,
        "refused_share": False,
    }


def described(refused: Refused) -> str:
    return str(blocked_failure(refused, "0123abcd-0000-4000-8000-000000000000").description)


def test_a_blocked_write_says_what_was_measured_and_names_the_branch_and_the_commands() -> None:
    result = RuleResult(row_count(10), 0, 3, value=3)
    text = described(Refused("silver.t", "w", 1, results=[result], branch="refused_1"))
    assert "rule row_count (the table has at least 10 rows) does not hold: found 3. " in text
    assert "the blocked rows are kept on its branch refused_1 for 7 days." in text
    assert "run `lakehouse retry silver.t`; " in text
    assert text.endswith("with `lakehouse publish silver.t --run 0123abcd --why …`.")


def test_where_nothing_was_staged_no_branch_is_named_and_nothing_can_be_published() -> None:
    text = described(Refused("silver.t", "w", 7))
    assert "branch" not in text
    assert "lakehouse publish" not in text
