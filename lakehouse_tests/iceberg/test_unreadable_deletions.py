"""A row that shall go, whose key was delivered and cannot be read, is refused like any other and
deletes nothing.
"""

from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.values.write_result import Outcome, Published, Refused
from lakehouse.iceberg.write import merge_rows
from lakehouse.iceberg.write.trial import judge
from lakehouse.tables.table import Column, IcebergTable, Merge
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.frames import frame_of
from lakehouse_tests.iceberg.declarations import content, put

pytestmark = pytest.mark.spark
MEMBERS = IcebergTable(
    name="silver.members",
    comment="One row for each number; one has none.",
    columns=[Column("no", "bigint"), Column("shop", "int"), Column("points", "int")],
    write=Merge(on="no"),
    rules=[castable(name, kind) for name, kind in (("no", "bigint"), ("shop", "int"))]
    + [castable("points", "int")],
)
QUARANTINE = "silver.members_quarantine"
SCHEMA = "no string, shop string, points string, _deleted boolean"
STOOD = [("1", "7", "10", False), ("2", "7", "20", False), (None, "7", "30", False)]
Row = tuple[str | None, str | None, str | None, bool]


def merge(engine: Engine, table: IcebergTable, *rows: Row) -> Outcome:
    return put(engine, table, rows, schema=SCHEMA)


def numbers(engine: Engine) -> list[int | None]:
    return [no for (no,) in content(engine, MEMBERS.name, "no")]


def with_key(on_failure: Any, **thresholds: float) -> IcebergTable:
    """The table, of whose key a value that cannot be read has other consequences."""
    key = castable("no", "bigint", on_failure=on_failure, **thresholds)
    return replace(MEMBERS, rules=[key, *MEMBERS.rules[1:]])


@pytest.mark.long
@glue_in_test_all
@pytest.mark.parametrize("is_small", [True, False], ids=["small", "large"])
def test_goes_to_the_quarantine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, *, is_small: bool
) -> None:
    if not is_small:
        monkeypatch.setattr(merge_rows, "_is_small", lambda _: False)
    merge(engine, MEMBERS, *STOOD)
    done = merge(engine, MEMBERS, ("x", None, None, True), ("2", "x", "x", True))
    assert isinstance(done, Published) and done.removed_rows == 1
    assert numbers(engine) == [1, None]
    assert content(engine, QUARANTINE, "no", "_reasons") == [("x", ["castable_no"])]


@pytest.mark.parametrize("beside", [[], STOOD[1:2]], ids=["alone", "beside what stays"])
@pytest.mark.parametrize("stood", [STOOD, STOOD[:2]], ids=["one has no key", "all have one"])
def test_blocks_where_that_does(
    embedded_engine: Engine, stood: list[Row], beside: list[Row]
) -> None:
    table = with_key("block")
    merge(embedded_engine, table, *stood)
    done = merge(embedded_engine, table, ("x", None, None, True), *beside)
    assert isinstance(done, Refused)
    assert [(result.rule.name, result.failed_rows) for result in done.reasons] == [
        ("castable_no", 1)
    ]
    assert len(numbers(embedded_engine)) == len(stood)


@pytest.mark.long
def test_is_rejected_by_more_rules_than_a_number_has_bits_for(embedded_engine: Engine) -> None:
    more = [castable("points", "int", name=f"points_{number}") for number in range(62)]
    table = replace(MEMBERS, rules=[*more, *MEMBERS.rules])
    merge(embedded_engine, table, *STOOD)
    merge(embedded_engine, table, ("x", None, "x", True), ("2", None, "x", True))
    assert numbers(embedded_engine) == [1, None]
    assert content(embedded_engine, QUARANTINE, "no", "_reasons") == [("x", ["castable_no"])]


def test_a_trial_removes_nothing_by_it(embedded_engine: Engine) -> None:
    rows = [("x", None, None, True), ("2", None, None, True)]
    trial = judge(
        embedded_engine,
        MEMBERS,
        frame_of(embedded_engine.spark, SCHEMA, rows),
        read_other=lambda _: None,
    )
    assert trial.removed is not None
    assert [row["no"] for row in trial.removed.collect()] == [2]
