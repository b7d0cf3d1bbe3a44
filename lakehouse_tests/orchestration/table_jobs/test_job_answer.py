"""What a job tells of its write is, on the other side, the same outcome and the same error."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from lakehouse.errors import ComputeFailed, JobFailed, WriteConflict
from lakehouse.iceberg.rules.refused_share import refused_share, without_blocking
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import row_count
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Pin,
    Published,
    Quarantined,
    Refused,
    RuleResult,
    Unchanged,
)
from lakehouse.iceberg.write.merge_rows import merge_key_rule
from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.table_jobs.compute_in_job import reported_rules
from lakehouse.orchestration.table_jobs.job_answer import (
    answered_error,
    answered_outcome,
    error_message,
    outcome_message,
)
from lakehouse.tables.table import Column, IcebergTable, Merge, Overwrite

pytestmark = pytest.mark.unit
TABLE = IcebergTable(
    "gold.figures",
    "Figures.",
    [Column("id", "bigint"), Column("name", "string")],
    write=Overwrite(),
    rules=[not_null("name"), row_count(low=1, high=9)],
    max_refused_share=0.5,
)
NAME, ROWS = TABLE.rules
FIRST_ID = 2**62 + 1
COMMON = {
    "table": "gold.figures",
    "write_id": "abc",
    "snapshot_id": FIRST_ID,
    "results": (
        RuleResult(NAME, 1, 3, ({"id": 1, "name": None},)),
        RuleResult(ROWS, 0, 3, value=Decimal("3.5"), note="more than once"),
        RuleResult(without_blocking(refused_share(TABLE)), 1, 3, value=1 / 3),
    ),
    "pins": {"raw": Pin("bronze.raw", FIRST_ID, rows=5)},
    "partitions": ("2026-01-01",),
    "quarantined": Quarantined("gold.figures_quarantine", 1, 1, FIRST_ID),
    "profile": {"distinct_count.id": 3.0},
    "suppressed_rows": {"bronze.raw": 2},
}


@pytest.mark.parametrize(
    "outcome",
    [
        Published(**COMMON, operation="append", added_rows=2, inserted_rows=None),
        Refused(**COMMON, branch="refused_abc", kept_for=timedelta(days=7)),
        Unchanged("gold.figures", "", None),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
def test_an_outcome_is_the_same_on_the_other_side(outcome: Outcome) -> None:
    reported = json.loads(json.dumps(outcome_message(outcome)))

    assert answered_outcome(["another message", reported], checked_rules(TABLE)) == outcome


def test_a_merge_that_repeats_a_key_is_told_as_blocked() -> None:
    """It is a rule of the merge itself, which no table declares."""
    table = replace(TABLE, write=Merge(on=["id"]))
    assert isinstance(table.write, Merge)
    broken = RuleResult(merge_key_rule(table, table.write), 2, 3, ({"id": 1, "name": "a"},))
    refused = Refused(
        **{**COMMON, "results": (broken,)}, branch="refused_abc", kept_for=timedelta(days=7)
    )
    reported = json.loads(json.dumps(outcome_message(refused)))

    assert answered_outcome([reported], reported_rules(table, ())) == refused


def test_a_rule_that_is_not_known_here_costs_no_outcome() -> None:
    reported = outcome_message(Published(**COMMON, operation="append", added_rows=2))
    answered = answered_outcome([reported], [NAME])

    assert isinstance(answered, Published)
    assert [result.rule.name for result in answered.results] == [NAME.name]


def test_without_an_answer_there_is_none() -> None:
    assert answered_outcome([], []) is None
    assert answered_error([{"other": 1}]) is None


@pytest.mark.parametrize(
    "error",
    [
        ComputeFailed("the function failed.", next_step="Correct it."),
        WriteConflict("others came first."),
        JobFailed("no such table."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_of_its_kind_on_the_other_side(error) -> None:
    reported = answered_error([json.loads(json.dumps(error_message(error)))])

    assert type(reported) is type(error)
    assert (str(reported), reported.next_step) == (str(error), error.next_step)


def test_what_blocked_there_blocks_here() -> None:
    refused = replace(
        Refused(**COMMON), results=(RuleResult(replace(NAME, on_failure="block"), 1, 3),)
    )
    reported = answered_outcome([outcome_message(refused)], checked_rules(TABLE))

    assert isinstance(reported, Refused)
    assert [result.rule.name for result in reported.reasons] == ["not_null_name"]
