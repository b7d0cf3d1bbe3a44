"""A kind of rule that is defined in one file, this one, is evaluated as those that are shipped:
in each way of writing, in the check alone, and in no job of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, EvaluatedSnapshot, evaluable
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.values.write_result import Outcome, Published, Refused, RuleResult
from lakehouse.tables.rule import Bounds, DeclaringTable, Rule
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite
from lakehouse_tests.iceberg.declarations import put


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


def put_values(engine: Engine, table: IcebergTable, *values: int | None) -> Outcome:
    rows = list(enumerate(values))
    return put(engine, table, rows, schema="id bigint, v int")


def values(outcome: Outcome) -> dict[str, Any]:
    return {result.rule.name: (result.level, result.value) for result in outcome.results}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_publishes_what_keeps_it_and_blocks_what_does_not(
    embedded_engine: Engine, mode: Any
) -> None:
    table = replace(TABLE, write=mode)
    kept = put_values(embedded_engine, table, 1, 2, 2)
    assert isinstance(kept, Published)
    assert values(kept) == {"variety_v": ("holds", 2), "letters": ("holds", 3)}

    refused = put_values(embedded_engine, table, 7, 7, 7)
    assert isinstance(refused, Refused)
    assert [result.rule.name for result in refused.reasons] == ["variety_v"]
    assert values(refused)["variety_v"] == ("fails", 1)
    assert read_history(embedded_engine, TABLE.name).main.rows == 3
    assert [result.level for result in evaluate(embedded_engine, table)] == ["holds"] * 2


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_looks_at_the_rows_that_are_not_quarantined(embedded_engine: Engine, mode: Any) -> None:
    rules = [not_null("v"), variety("v", 3, on_failure="warn")]
    done = put_values(embedded_engine, replace(TABLE, write=mode, rules=rules), 1, 2, None)
    assert isinstance(done, Published)
    assert values(done)["variety_v"] == ("warns", 2)


def test_that_says_nothing_of_its_evaluation_is_named() -> None:
    class Silent(Rule):
        sql = "nothing"

    with pytest.raises(DeclarationError, match="rule quiet is a Silent, which cannot be"):
        evaluable([Silent("quiet", "Quiet.", (), "warn")])
