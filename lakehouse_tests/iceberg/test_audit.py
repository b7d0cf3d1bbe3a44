"""Checks alone: they look at what readers see, and write nothing."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.aggregate_rules import mean
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.rules.rows import accepted, between, excluded, expression, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.iceberg.declarations import DAYS, MONDAY, TUESDAY, days, rows_of, run_of

pytestmark = pytest.mark.spark
LOOSE = IcebergTable(
    name="bronze.loose",
    comment="",
    columns=[Column("id", "bigint"), Column("kind", "string"), Column("v", "double")],
    write=Append(once_by=()),
)
RULES = [
    not_null("kind", on_failure="warn"),
    accepted("kind", ["a", "b"], on_failure="warn"),
    excluded("kind", ["b"], on_failure="warn"),
    between("v", 0, 10, on_failure="warn"),
    expression("v_below_id", "v < id", on_failure="block"),
    unique("id"),
    unique("id", "kind", on_failure="warn"),
]
NAN = float("nan")
ROWS = [(1, "a", 0.5), (1, "b", 11.0), (2, None, -1.0), (3, "c", NAN), (4, "it's", None)]


@pytest.fixture
def loose(embedded_engine: Engine) -> Engine:
    write(
        embedded_engine,
        LOOSE,
        rows_of(embedded_engine, "id bigint, kind string, v double", ROWS),
    )
    return embedded_engine


def table() -> IcebergTable:
    return replace(LOOSE, rules=RULES)


def test_counts_the_rows_that_break_each_rule(loose: Engine) -> None:
    found = {result.rule.name: result.failed_rows for result in evaluate(loose, table())}
    assert found == {
        "not_null_kind": 1,
        "accepted_kind": 2,
        "excluded_kind": 1,
        "between_v": 3,
        "v_below_id": 2,
        "unique_id": 1,
        "unique_id_kind": 0,
    }


@pytest.mark.long
def test_looks_at_the_partitions_it_is_asked_for(embedded_engine: Engine) -> None:
    for day, values in ((MONDAY, [1, 2]), (TUESDAY, [3])):
        rows = [(day, value, value) for value in values]
        write(embedded_engine, DAYS, days(embedded_engine, *rows), run=run_of(day))
    strict = replace(
        DAYS, rules=[between("v", 2, 2, on_failure="warn"), mean("v", 0, 2, on_failure="warn")]
    )
    found = evaluate(embedded_engine, strict, run_of(MONDAY).partitions)
    assert [(result.failed_rows, result.total_rows, result.value) for result in found] == [
        (1, 2, None),
        (0, 2, 1.5),
    ]


def test_take_two_jobs_for_any_number_of_rules(embedded_engine: Engine, count_jobs) -> None:
    """One for all rules on rows, one for all of uniqueness."""
    write(
        embedded_engine,
        LOOSE,
        rows_of(embedded_engine, "id bigint, kind string, v double", [(9, "a", 1.0)]),
    )
    with count_jobs() as counted:
        evaluate(embedded_engine, table())
    assert counted.jobs == 2
