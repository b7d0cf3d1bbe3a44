"""How much of a write may be refused: half of many rows is an error, and holds the first
computation back.
"""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.publish_blocked import publish_blocked
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.rules.refused_share import refused_share
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Published,
    Refused,
    RuleResult,
    Unchanged,
)
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.asset_checks import Evaluated, check_result
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
)
from lakehouse.tables.table_validation import REFUSED_SHARE as NAME
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.declarations import rows_of

DAY = date(2026, 1, 1)
VALUES = IcebergTable(
    "silver.values",
    "Values.",
    [Column("id", "bigint"), Column("v", "bigint"), Column("d", "date")],
    write=Merge(on=("id",)),
    partitioning=["d"],
    rules=[not_null("v", on_failure="quarantine")],
)
_SCHEMA = "id bigint, v bigint, d date"
MODES = [Merge(on=("id",)), Append(once_by=()), Overwrite(), OverwritePartitions(by="d")]


def given(engine: Engine, rows: int, refused: int, first_id: int = 0) -> Any:
    made = [(first_id + at, None if at < refused else at, DAY) for at in range(rows)]
    return rows_of(engine, _SCHEMA, made)


def compute(engine: Engine, table: IcebergTable, compute: Any, run_id: str = "r") -> Outcome:
    days = (
        Partitions((DAY.isoformat(),), ((DAY, date(2026, 1, 2)),))
        if table.overwritten_by
        else None
    )
    return write(engine, table, compute, run=Run(run_id, days))


def share(done: Outcome) -> RuleResult:
    return next(result for result in done.results if result.rule.name == NAME)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("declared", "rows", "is_first", "part", "level"),
    [
        (None, 100, False, 0.5, "holds"),
        (None, 100, False, 0.51, "warns"),
        (None, 99, True, 1.0, "holds"),
        (None, 100, True, 0.51, "fails"),
        (0.1, 10, False, 0.2, "fails"),
        (0.1, 10, False, 0.1, "holds"),
        (0.8, 100, True, 0.6, "warns"),
        (0.8, 99, True, 0.6, "holds"),
        (1, 100, True, 1.0, "warns"),
    ],
)
def test_how_much_is_too_much(
    declared: float | None, rows: int, is_first: bool, part: float, level: str
) -> None:
    rule = refused_share(replace(VALUES, max_refused_share=declared), rows, is_first=is_first)
    assert rule.level_of_value(part) == level


@pytest.mark.unit
@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_what_is_no_share_is_rejected(share: float) -> None:
    with pytest.raises(
        DeclarationError, match=r"max_refused_share is .* expected a share from 0 to 1"
    ):
        replace(VALUES, max_refused_share=share)


@pytest.mark.unit
def test_a_share_is_declared_only_where_rows_can_be_rejected() -> None:
    with pytest.raises(DeclarationError, match="none of its rules quarantines rows"):
        replace(VALUES, max_refused_share=0.5, rules=[])


@pytest.mark.spark
@pytest.mark.parametrize(
    "mode",
    repeated(MODES, tried=[MODES[0], MODES[3]], rest="long"),
    ids=lambda mode: type(mode).__name__,
)
def test_the_first_computation_is_kept_aside_where_most_is_rejected(
    embedded_engine: Engine, mode: Any
) -> None:
    table = replace(VALUES, write=mode)
    done = compute(embedded_engine, table, given(embedded_engine, 100, 60))
    assert isinstance(done, Refused) and [found.rule.name for found in done.reasons] == [NAME]
    assert share(done).summary == "0.6 (60 of 100 rows rejected: not_null_v 60)"
    assert read_history(embedded_engine, table.name).main is None
    assert (
        publish_blocked(embedded_engine, table, "r", by="me", why="the rule is right").rows
        == 40
    )


@pytest.mark.spark
def test_a_later_computation_is_published_and_is_an_error(embedded_engine: Engine) -> None:
    table = replace(VALUES, write=Append(once_by=()))
    assert isinstance(
        compute(embedded_engine, table, given(embedded_engine, 100, 0)), Published
    )
    done = compute(embedded_engine, table, given(embedded_engine, 100, 60, first_id=100))
    assert isinstance(done, Published)
    check = check_result(table, share(done), Evaluated.by(done))
    assert (check.passed, check.severity.value, check.metadata["value"].value) == (
        False,
        "ERROR",
        0.6,
    )
    assert (
        check.description
        == "No more than half of the rows are rejected: 0.6 (60 of 100 rows rejected: not_null_v"
        " 60)."
    )


@pytest.mark.long
@pytest.mark.spark
def test_a_declared_share_blocks_any_write(embedded_engine: Engine) -> None:
    table = replace(VALUES, max_refused_share=0.1)
    assert isinstance(compute(embedded_engine, table, given(embedded_engine, 10, 1)), Published)
    assert isinstance(
        compute(embedded_engine, table, given(embedded_engine, 10, 10, first_id=20)), Refused
    )
    assert isinstance(compute(embedded_engine, table, given(embedded_engine, 10, 1)), Unchanged)


@pytest.mark.spark
def test_one_bad_file_holds_no_good_one_back(embedded_engine: Engine) -> None:
    rows = [
        (at, None if at < 120 else at, DAY, "bad.csv" if at < 125 else "good.csv")
        for at in range(130)
    ]
    done = compute(
        embedded_engine,
        VALUES,
        rows_of(embedded_engine, f"{_SCHEMA}, _source_file string", rows),
    )
    assert isinstance(done, Published) and done.row_count == 10
    assert check_result(VALUES, share(done), Evaluated.by(done)).severity.value == "ERROR"
