"""A kind of rule that is defined in one file, this one, is evaluated as those that are shipped:
in each way of writing, in the check alone, and in no job of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.write_result import Outcome, Published, Refused, RuleResult
from lakehouse.iceberg.rules.aggregate_rules import mean
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, EvaluatedSnapshot, evaluable
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.asset_checks import Evaluated, check_result
from lakehouse.tables.bounds import Bounds
from lakehouse.tables.rule import DeclaringTable, Rule
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite
from lakehouse_tests.iceberg.declarations import rows_of


class VarietyRule(EvaluableRule):
    """How many distinct values a column has in the rows that a write brings."""

    @property
    def sql(self) -> str:
        return f"count(DISTINCT {self.columns[0]}) {self.bounds}"

    def check(self, table: DeclaringTable) -> None:
        if self.columns[0] in table.personal_columns:
            raise DeclarationError(f"{table.name}: {self.name} is about a person.")

    def aggregates(self, table: IcebergTable, where: str = "") -> Mapping[str, str]:
        only = f" FILTER (WHERE {where})" if where else ""
        return {self.name: f"count(DISTINCT {self.columns[0]}){only}"}


@dataclass(frozen=True, kw_only=True)
class NameRule(EvaluableRule):
    """Letters of the table's name: metadata alone."""

    letter: str
    reads_rows: ClassVar[bool] = False

    @property
    def sql(self) -> str:
        return f"letters {self.letter} {self.bounds}"

    def snapshot_result(self, evaluated: EvaluatedSnapshot) -> RuleResult:
        value = evaluated.table.name.count(self.letter)
        return RuleResult(self, 0, evaluated.rows, value=value)


def variety(column: str, at_least: int, **options: Any) -> Rule:
    """Say that a column has at least so many values."""
    description = f"{column} has at least {at_least} values"
    return VarietyRule.declare(
        "variety", (column,), description, options, bounds=Bounds(low=at_least)
    )


def letters(letter: str, at_most: int, **options: Any) -> Rule:
    """Say that the table's name has at most so many of a letter."""
    return NameRule.declare(
        "letters",
        (),
        f"at most {at_most} {letter}",
        options,
        letter=letter,
        bounds=Bounds(high=at_most),
    )


TABLE = IcebergTable(
    "silver.sorts",
    "Sorts.",
    [Column("id", "bigint"), Column("v", "int")],
    Overwrite(),
    rules=[variety("v", 2), letters("s", 3)],
)
MODES = [Append(once_by=()), Overwrite(), Merge(on="id")]


def put(engine: Engine, table: IcebergTable, *values: int | None) -> Outcome:
    rows = list(enumerate(values))
    return write(engine, table, rows_of(engine, "id bigint, v int", rows))


def values(outcome: Outcome) -> dict[str, Any]:
    return {result.rule.name: (result.level, result.value) for result in outcome.results}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_publishes_what_keeps_it_and_refuses_what_does_not(
    embedded_engine: Engine, mode: Any
) -> None:
    table = replace(TABLE, write=mode)
    kept = put(embedded_engine, table, 1, 2, 2)
    assert isinstance(kept, Published)
    assert values(kept) == {"variety_v": ("holds", 2), "letters": ("holds", 3)}

    refused = put(embedded_engine, table, 7, 7, 7)
    assert isinstance(refused, Refused)
    assert [result.rule.name for result in refused.reasons] == ["variety_v"]
    assert values(refused)["variety_v"] == ("fails", 1)
    assert read_history(embedded_engine, TABLE.name).main.rows == 3
    assert [result.level for result in evaluate(embedded_engine, table)] == ["holds"] * 2


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_looks_at_the_rows_that_are_not_quarantined(embedded_engine: Engine, mode: Any) -> None:
    rules = [not_null("v"), variety("v", 3, on_failure="warn")]
    done = put(embedded_engine, replace(TABLE, write=mode, rules=rules), 1, 2, None)
    assert isinstance(done, Published)
    assert values(done)["variety_v"] == ("warns", 2)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_takes_no_job_that_a_figure_does_not(
    embedded_engine: Engine, mode: Any, count_jobs: Any
) -> None:
    jobs = []
    for name, rule in (("means", mean("v", 1)), ("sorts", variety("v", 2))):
        table = replace(
            TABLE, name=f"silver.{name}", write=mode, rules=[mean("v", 0, name="m"), rule]
        )
        put(embedded_engine, table, 1, 2)
        with count_jobs() as counted:
            put(embedded_engine, table, 3, 4)
        jobs.append(counted.jobs)
    assert jobs[0] == jobs[1]


def test_is_a_check_like_any_other() -> None:
    result = RuleResult(variety("v", 2), 0, 9, value=1)
    check = check_result(TABLE, result, Evaluated("main", 7))
    assert (check.passed, check.check_name) == (False, "variety_v")
    assert check.metadata["predicate"].value == "count(DISTINCT v) at least 2"
    assert check.metadata["low"].value == 2.0


def test_decides_rows_by_what_it_declares() -> None:
    other = replace(TABLE, rules=[variety("v", 3), letters("s", 3)])
    assert other.declaration_hash != TABLE.declaration_hash


def test_refuses_a_table_that_it_cannot_hold_of() -> None:
    with pytest.raises(DeclarationError, match="variety_v is about a person"):
        replace(TABLE, columns=[Column("id", "bigint"), Column("v", "int", personal=True)])


def test_that_says_nothing_of_its_evaluation_is_named() -> None:
    class Silent(Rule):
        sql = "nothing"

    with pytest.raises(DeclarationError, match="rule quiet is a Silent, which cannot be"):
        evaluable([Silent("quiet", "Quiet.", (), "warn")])
