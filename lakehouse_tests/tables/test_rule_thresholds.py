"""How much it takes for a rule to warn, and how much for it to keep a write from being
published.
"""

import math
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.aggregate_rules import mean, null_fraction, total
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import (
    fresh,
    row_count,
    row_count_change,
    schema_as_declared,
)
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Column, IcebergTable, OverwritePartitions


def level(rule: Rule, failed_rows: int, total_rows: int = 100) -> str:
    return RuleResult(rule, failed_rows, total_rows).level


@pytest.mark.parametrize(
    ("rule", "levels"),
    [
        (not_null("v"), {0: "holds", 1: "warns", 100: "warns"}),
        (not_null("v", on_failure="warn"), {0: "holds", 1: "warns"}),
        (not_null("v", on_failure="block"), {0: "holds", 1: "fails"}),
        (not_null("v", on_failure="block", fail_above=0.29), {29: "holds", 30: "fails"}),
        (not_null("v", on_failure="warn", warn_above=0.07), {7: "holds", 8: "warns"}),
        (
            not_null("v", on_failure="block", warn_above=0.01, fail_above=0.05),
            {1: "holds", 2: "warns", 5: "warns", 6: "fails"},
        ),
        (not_null("v", fail_above=0.2), {0: "holds", 1: "warns", 20: "warns", 21: "fails"}),
        (not_null("v", warn_above=0.02, fail_above=0.2), {2: "holds", 3: "warns", 21: "fails"}),
        (unique("v", warn_above=0.01, fail_above=0.02), {1: "holds", 2: "warns", 3: "fails"}),
        (null_fraction("v", at_most=0.05), {5: "holds", 6: "fails"}),
        (
            null_fraction("v", at_most=0.05, warn_above=0.01),
            {1: "holds", 5: "warns", 6: "fails"},
        ),
        (null_fraction("v", at_most=0.05, on_failure="warn"), {5: "holds", 6: "warns"}),
    ],
    ids=lambda found: str(found) if isinstance(found, dict) else None,
)
def test_of_rows_are_shares_of_them(rule: Rule, levels: dict[int, str]) -> None:
    assert {failed: level(rule, failed) for failed in levels} == levels


@pytest.mark.parametrize(
    ("rule", "levels"),
    [
        (
            mean("v", 1, 3),
            {1: "holds", 3.0: "holds", 3.1: "fails", math.nan: "fails", None: "holds"},
        ),
        (mean("v", 1, 3, on_failure="warn"), {0: "warns", math.nan: "warns"}),
        (
            total("v", 10, warn_outside=(20, 90)),
            {9: "fails", 10: "warns", 20: "holds", 91: "warns"},
        ),
        (row_count(1, warn_outside=(100, None)), {0: "fails", 99: "warns", 100: "holds"}),
        (
            row_count_change(at_most=0.5, at_least=-0.1),
            {0.5: "holds", 0.51: "fails", -0.1: "holds", -0.2: "fails"},
        ),
        (
            fresh(within=timedelta(days=2), warn_after=timedelta(days=1), on_failure="block"),
            {24: "holds", 25: "warns", 48: "warns", math.inf: "fails"},
        ),
        (
            reconciles("gold.a", at_most=0.05, warn_above=0.01),
            {0.01: "holds", 0.02: "warns", math.inf: "fails"},
        ),
        (schema_as_declared(), {0: "holds", 1: "fails"}),
        # What lies on a bound as it was written is within, as which number either is held.
        (
            mean("v", 0.1, 0.3),
            {
                Decimal("0.300000"): "holds",
                Decimal("0.300001"): "fails",
                Decimal("0.1"): "holds",
                Decimal("0.0999"): "fails",
            },
        ),
        (
            total("v", high=9, warn_outside=(None, 0.3)),
            {Decimal("0.30"): "holds", Decimal("0.31"): "warns"},
        ),
        (
            mean("v", Decimal("0.3"), Decimal("0.7")),
            {0.3: "holds", 0.7: "holds", 0.29: "fails", 0.71: "fails", math.nan: "fails"},
        ),
        (total("v", -math.inf, math.inf), {Decimal(7): "holds", math.nan: "fails"}),
        (mean("v", Decimal("0.3"), 0.3), {0.3: "holds", Decimal("0.3"): "holds"}),
    ],
    ids=lambda found: str(found) if isinstance(found, dict) else None,
)
def test_of_a_measure_are_bounds(rule: Rule, levels: dict[Any, str]) -> None:
    assert {value: RuleResult(rule, 0, 9, value=value).level for value in levels} == levels


@pytest.mark.parametrize(
    ("said", "make"),
    [
        (
            "only warns, and has fail_above",
            lambda: not_null("v", on_failure="warn", fail_above=0.1),
        ),
        (
            "only warns, and has fail_above or warn_outside",
            lambda: mean("v", 1, on_failure="warn", warn_outside=(2, None)),
        ),
        (
            "warn_above is 1.5; expected a share of rows from 0 to below 1",
            lambda: not_null("v", warn_above=1.5),
        ),
        ("expected it to warn first", lambda: unique("v", warn_above=0.1)),
        ("expected it to warn first", lambda: unique("v", warn_above=0.2, fail_above=0.1)),
        (
            "or warn_outside=(low, high) in a rule with bounds",
            lambda: mean("v", 1, fail_above=0.1),
        ),
        (
            "no single row can be quarantined for it",
            lambda: references("v", "silver.b", on_failure="quarantine"),
        ),
        (
            "no single row can be quarantined for it",
            lambda: row_count(1, on_failure="quarantine"),
        ),
        (
            "cannot quarantine them",
            lambda: null_fraction("v", at_most=0.1, on_failure="quarantine"),
        ),
        ("mean('v') is from None to None", lambda: mean("v")),
        ("row_count is from 3 to 2", lambda: row_count(3, 2)),
        ("compares 1 with 2 columns", lambda: references("v", "silver.b", ["x", "y"])),
        ("is not in the past", lambda: row_count_change(at_most=1, against=0)),
    ],
)
def test_that_cannot_work_are_rejected(said: str, make: Any) -> None:
    with pytest.raises(DeclarationError, match=said.replace("(", r"\(").replace(")", r"\)")):
        make()


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("rule mean_s is about s, which is string; expected a column of numbers", mean("s", 1)),
        ("rule total_pay is about pay, which is personal", total("pay", 1)),
        (
            "rule reconciles_silver_b compares entire tables, and a run writes partitions of d",
            reconciles("silver.b"),
        ),
        ("names x; expected columns among", references("x", "silver.b")),
    ],
)
def test_that_a_table_cannot_have_are_rejected(said: str, rule: Rule) -> None:
    columns = [Column("s", "string"), Column("pay", "int", personal=True), Column("d", "date")]
    with pytest.raises(DeclarationError, match=said):
        IcebergTable(
            "silver.a",
            "",
            columns,
            OverwritePartitions(by="d"),
            partitioning=["d"],
            rules=[rule],
        )
