"""A figure of a table is that of another: what was computed from rows accounts for all of
them.
"""

from dataclasses import replace
from datetime import date

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import incremental, latest
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.rules.reconciliation import ReconciliationRule, reconciles
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Outcome, Published, Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Overwrite, OverwritePartitions
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import DAYS, MONDAY, TUESDAY, put, run_of

pytestmark = [pytest.mark.spark, whatever_the_catalog]
SOURCE = replace(DAYS, rules=[])
SUMMARY = IcebergTable(
    "gold.by_day",
    "",
    [Column("day", "date"), Column("rows", "bigint")],
    OverwritePartitions(by="day"),
    partitioning=["day"],
    rules=[reconciles(SOURCE.name, here="sum(rows)", by="d")],
)
INPUTS = {"rows": latest(SOURCE.name, by="d")}


def deliver(engine: Engine, day: date, rows: int) -> Outcome:
    return put(engine, SOURCE, [*((day, at, at) for at in range(rows))], run=run_of(day))


def summarise(engine: Engine, *run_days: date, where: str = "true") -> Outcome:
    def compute(rows):
        return rows.where(where).groupBy("d").count().selectExpr("d AS day", "count AS rows")

    return write(engine, SUMMARY, compute, INPUTS, run_of(*run_days) if run_days else Run())


def test_a_runs_partitions_are_compared(engine: Engine) -> None:
    deliver(engine, MONDAY, 3)
    deliver(engine, TUESDAY, 2)
    done = summarise(engine, TUESDAY)
    assert isinstance(done, Published)
    assert [
        (r.level, r.value) for r in done.results if isinstance(r.rule, ReconciliationRule)
    ] == [("holds", 0.0)]


def test_a_difference_is_blocked_and_told(engine: Engine) -> None:
    deliver(engine, MONDAY, 4)
    done = summarise(engine, MONDAY, where="v > 0")
    assert isinstance(done, Refused)
    (result,) = done.reasons
    assert result.value == 0.25 and result.note.startswith(
        "3 here, 4 in silver.days at snapshot "
    )


@pytest.mark.long
def test_alone_nothing_is_said_while_partitions_are_owed(engine: Engine) -> None:
    deliver(engine, MONDAY, 3)
    summarise(engine, MONDAY)
    assert [result.value for result in evaluate(engine, SUMMARY)] == [0.0]
    deliver(engine, MONDAY, 5)
    deliver(engine, TUESDAY, 2)
    summarise(engine, TUESDAY)
    (result,) = evaluate(engine, SUMMARY)
    assert (result.level, result.value) == ("holds", None)
    assert "not yet computed from the newest snapshot of silver.days" in result.note
    summarise(engine, MONDAY)
    assert [result.value for result in evaluate(engine, SUMMARY)] == [0.0]


def test_counts_of_whole_tables_start_no_job(engine: Engine, count_jobs) -> None:
    deliver(engine, MONDAY, 3)
    copy = IcebergTable(
        "gold.copy", "", DAYS.columns, Append(once_by=()), rules=[reconciles(SOURCE.name)]
    )
    inputs = {"rows": incremental(SOURCE.name)}
    assert isinstance(write(engine, copy, lambda rows: rows, inputs), Published)
    with count_jobs() as counted:
        assert [(r.level, r.value) for r in evaluate(engine, copy)] == [("holds", 0.0)]
    assert counted.jobs == 0
    deliver(engine, TUESDAY, 3)
    assert isinstance(write(engine, copy, lambda rows: rows.where("v = 0"), inputs), Refused)


def test_sums_may_lie_apart_as_far_as_is_tolerated(engine: Engine) -> None:
    deliver(engine, MONDAY, 5)
    rule = reconciles(SOURCE.name, here="sum(v)", there="sum(v)", at_most=0.2, warn_above=0.05)
    table = IcebergTable("gold.kept", "", [Column("v", "int")], Overwrite(), rules=[rule])
    levels = {}
    for least in (0, 2, 3):
        done = write(
            engine,
            table,
            lambda rows, least=least: rows.where(f"v >= {least}").select("v"),
            {"rows": INPUTS["rows"]},
        )
        levels[least] = (done.results[0].level, done.results[0].value)
    assert levels == {0: ("holds", 0.0), 2: ("warns", 0.1), 3: ("fails", 0.3)}


def test_nothing_is_as_much_as_nothing(engine: Engine) -> None:
    put(engine, SOURCE, [], run=run_of(MONDAY))
    table = IcebergTable(
        "gold.empty",
        "",
        [Column("v", "int")],
        Overwrite(),
        rules=[reconciles(SOURCE.name, here="sum(v)")],
    )
    done = put(engine, table, [], schema="v int")
    assert [result.value for result in done.results] == [0.0]
