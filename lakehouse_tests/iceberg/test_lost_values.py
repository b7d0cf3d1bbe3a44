"""Unreadable values count for their `castable` rule, also next to rules that reject NULL."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.rows import accepted, between, castable, not_null
from lakehouse.iceberg.values.write_result import Outcome, Published, Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite, WriteMode
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.declarations import content, rows_of

pytestmark = pytest.mark.spark
READINGS = IcebergTable(
    "bronze.readings", "", [Column("id", "bigint"), Column("v", "int")], Append(once_by=())
)
QUARANTINE = "bronze.readings_quarantine"
MODES = [Append(once_by=()), Overwrite(), Merge(on=["id"])]


def in_mode(standard: WriteMode) -> pytest.MarkDecorator:
    """The code path is the same in each mode: the others run in `make test-all`."""
    modes = repeated(MODES, tried=[standard], rest="long")
    return pytest.mark.parametrize("mode", modes, ids=lambda mode: type(mode).__name__)


def outcome(
    engine: Engine, mode: WriteMode, rules: Sequence[Rule], *values: str | None
) -> Outcome:
    table = replace(READINGS, write=mode, rules=rules)
    return write(engine, table, rows_of(engine, "id bigint, v string", list(enumerate(values))))


def found(done: Outcome) -> dict[str, tuple[int, int]]:
    """By rule on rows, how many of how many rows break it."""
    return {
        result.rule.name: (result.failed_rows, result.total_rows)
        for result in done.results
        if result.rule.is_row_rule
    }


def lost(on_failure: Any, **thresholds: float) -> Rule:
    return castable("v", "int", on_failure=on_failure, **thresholds)


@in_mode(MODES[0])
@pytest.mark.parametrize("missing", [None, "1"], ids=["one is missing", "none is missing"])
def test_blocks_beside_a_rule_that_quarantines_what_is_missing(
    embedded_engine: Engine, mode: WriteMode, missing: str | None
) -> None:
    rules = [lost("block"), not_null("v"), between("v", 0, 9), accepted("v", [1, 3])]
    done = outcome(embedded_engine, mode, rules, "1", "x", missing)
    assert isinstance(done, Refused)
    (reason,) = done.reasons
    assert (reason.rule.name, reason.failed_rows) == ("castable_v", 1)
    assert [row["v"] for row in reason.sample] == ["x"]
    assert found(done)["not_null_v"] == (int(missing is None), 3)
    if missing is None:
        assert content(embedded_engine, QUARANTINE, "v") == [(None,)]
    assert content(embedded_engine, READINGS.name) == []


@in_mode(MODES[2])
@pytest.mark.parametrize(
    "rule",
    [lost("warn"), lost("block", fail_above=0.5)],
    ids=["warns", "tolerated"],
)
def test_is_counted_where_it_is_let_through_and_no_row_is_left_without_a_value(
    embedded_engine: Engine, mode: WriteMode, rule: Rule
) -> None:
    done = outcome(embedded_engine, mode, [rule, not_null("v")], "1", "x", "3")
    assert isinstance(done, Published)
    assert found(done) == {"castable_v": (1, 3), "not_null_v": (1, 3)}
    (result,) = [result for result in done.results if result.rule is rule]
    assert result.level == ("warns" if rule.on_failure == "warn" else "holds")
    assert content(embedded_engine, READINGS.name, "v") == [(1,), (3,)]
    assert content(embedded_engine, QUARANTINE, "v", "_reasons") == [("x", ["not_null_v"])]
