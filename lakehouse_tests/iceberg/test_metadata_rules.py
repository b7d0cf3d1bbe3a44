"""Rules that metadata answers: in a write and alone, without a Spark job."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot
from lakehouse.iceberg.rules.evaluation import evaluate, evaluate_snapshot
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.size_schema_and_freshness import (
    fresh,
    row_count,
    row_count_change,
    schema_as_declared,
)
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Published,
    Refused,
    RuleResult,
    Unchanged,
)
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import EVENTS, rows_of, snapshot_id

pytestmark = pytest.mark.spark
ALL = (
    row_count(1, 1000),
    row_count_change(at_most=1.0, at_least=-0.5),
    row_count_change(at_most=1.0, against=timedelta(days=7), name="weekly_growth"),
    schema_as_declared(),
    fresh(within=timedelta(hours=2)),
)


def events(engine: Engine, rows: int, *rules: Rule) -> Outcome:
    return write(
        engine,
        replace(EVENTS, rules=rules),
        rows_of(engine, "id bigint, v int", [(at, at) for at in range(rows)]),
    )


def found(results: Sequence[RuleResult]) -> dict[str, tuple]:
    return {result.rule.name: (result.level, result.value) for result in results}


def evaluated_at(engine: Engine, now: datetime, rule: Rule) -> RuleResult:
    history = read_history(engine, EVENTS.name)
    snapshot = EvaluatedSnapshot(engine, EVENTS, history, history.main, now=now)
    (result,) = evaluate_snapshot(snapshot, [rule])
    return result


def test_start_no_job(embedded_engine: Engine, count_jobs) -> None:
    events(embedded_engine, 10)
    events(embedded_engine, 5)
    table = replace(EVENTS, rules=[*ALL, reconciles(EVENTS.name)])
    with count_jobs() as counted:
        results = evaluate(embedded_engine, table)
    assert counted.jobs == 0
    assert {result.level for result in results} == {"holds"}
    assert [result.total_rows for result in results] == [15] * len(table.rules)


@glue_in_test_all
def test_look_at_the_candidate(engine: Engine) -> None:
    events(engine, 10)
    before = snapshot_id(engine, EVENTS.name)
    done = events(
        engine, 6, row_count(high=15), row_count_change(at_most=0.5, warn_outside=(None, 0.1))
    )
    assert isinstance(done, Refused) and snapshot_id(engine, EVENTS.name) == before
    assert found(done.results) == {
        "row_count": ("fails", 16),
        "row_count_change": ("fails", 0.6),
    }
    assert done.results[1].note.startswith("16 rows, 10 before, in snapshot ")


def test_growth_is_against_as_many_writes_earlier_as_asked_for(embedded_engine: Engine) -> None:
    for rows in (10, 10, 20):
        events(embedded_engine, rows)
    growths = [
        row_count_change(at_most=9, against=back, name=f"growth_{back}") for back in (1, 2, 3)
    ]
    results = evaluate(embedded_engine, replace(EVENTS, rules=growths))
    assert found(results) == {
        "growth_1": ("holds", 1.0),
        "growth_2": ("holds", 3.0),
        "growth_3": ("holds", None),
    }


def test_growth_is_against_what_readers_saw_at_a_time(embedded_engine: Engine) -> None:
    events(embedded_engine, 10)
    events(embedded_engine, 30)
    log = read_history(embedded_engine, EVENTS.name).log
    hour = timedelta(hours=1)
    rule = row_count_change(at_most=0.5, against=hour)
    times = [log[0][0] + hour - timedelta(seconds=1), log[-2][0] + hour, log[-1][0] + hour]
    results = [evaluated_at(embedded_engine, now, rule) for now in times]
    assert [result.value for result in results] == [None, 3.0, 0.0]


def test_a_schema_that_differs_is_described(embedded_engine: Engine) -> None:
    events(embedded_engine, 1)
    other = replace(
        EVENTS,
        columns=[Column("id", "string"), Column("v", "int"), Column("w", "int")],
        rules=[schema_as_declared()],
    )
    (result,) = evaluate(embedded_engine, other)
    assert (result.level, result.value) == ("fails", 2)
    assert "add column w" in result.note and "column id" in result.note


def test_age_is_since_rows_were_published(embedded_engine: Engine) -> None:
    rule = fresh(within=timedelta(hours=2), on_failure="block")
    done = events(embedded_engine, 1, rule)
    assert isinstance(done, Published) and found(done.results) == {"fresh": ("holds", 0.0)}
    published, _ = read_history(embedded_engine, EVENTS.name).log[-1]
    later = evaluated_at(embedded_engine, published + timedelta(hours=3), rule)
    assert (later.level, later.value) == ("fails", 3.0)


def test_a_table_that_was_never_published_is_not_fresh(embedded_engine: Engine) -> None:
    events(embedded_engine, 0)
    (result,) = evaluate(
        embedded_engine, replace(EVENTS, rules=[fresh(within=timedelta(days=1))])
    )
    assert (result.level, result.note) == ("warns", "rows were never published")


def test_age_is_told_also_where_nothing_is_to_be_done(
    embedded_engine: Engine, count_jobs
) -> None:
    events(embedded_engine, 1)
    table = IcebergTable(
        "silver.copy",
        "",
        EVENTS.columns,
        EVENTS.write,
        rules=[fresh(within=timedelta(0)), row_count(1)],
    )
    inputs = {"events": incremental(EVENTS.name)}
    write(embedded_engine, table, lambda events: events, inputs)
    with count_jobs() as counted:
        done = write(embedded_engine, table, lambda events: events, inputs)
    assert isinstance(done, Unchanged) and counted.jobs == 0
    assert [(result.rule.name, result.level) for result in done.results] == [("fresh", "warns")]
