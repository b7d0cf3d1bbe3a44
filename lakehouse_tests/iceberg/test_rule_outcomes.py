"""What comes of a write by how much of it breaks a rule, in each way of writing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.aggregate_rules import mean, null_fraction, total
from lakehouse.iceberg.rules.rows import between, castable, not_null
from lakehouse.iceberg.values.write_result import Outcome, Published, Refused
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite, WriteMode
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import content, put

pytestmark = [pytest.mark.spark, whatever_the_catalog]
READINGS = IcebergTable(
    "bronze.readings", "", [Column("id", "bigint"), Column("v", "int")], Append(once_by=())
)
MODES = [Append(once_by=()), Overwrite(), Merge(on=["id"])]


def outcome(
    engine: Engine, mode: WriteMode, rule: Rule, values: Sequence[Any], type_: str = "int"
) -> Outcome:
    table = replace(READINGS, write=mode, rules=[rule])
    return put(engine, table, list(enumerate(values)), schema=f"id bigint, v {type_}")


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
@pytest.mark.parametrize(
    ("values", "expected", "level"),
    [
        ([1, 1, 1, 1], Published, "holds"),
        ([1, 1, 1, None], Published, "warns"),
        ([1, None, None, 1], Refused, "fails"),
    ],
)
def test_two_thresholds(
    engine: Engine, mode: WriteMode, values: list, expected: type, level: str
) -> None:
    rule = not_null("v", on_failure="block", warn_above=0.2, fail_above=0.4)
    done = outcome(engine, mode, rule, values)
    assert isinstance(done, expected)
    (result,) = done.results
    assert (result.level, result.failed_rows, result.total_rows) == (
        level,
        values.count(None),
        4,
    )
    assert len(result.sample) == (0 if level == "holds" else values.count(None))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2, 99], Published), ([1, 98, 99], Refused), ([98, 99], Refused)],
)
def test_too_many_rows_for_the_quarantine(
    engine: Engine, mode: WriteMode, values: list[int], expected: type
) -> None:
    """Some rows may be taken out; where most have to be, something else is wrong."""
    done = outcome(engine, mode, between("v", 0, 9, fail_above=0.5), values)
    refused = [str(value) for value in values if value > 9]
    assert (
        isinstance(done, expected)
        and done.quarantined is not None
        and done.quarantined.rows == len(refused)
    )
    assert [v for (v,) in content(engine, "bronze.readings_quarantine", "v")] == refused
    standing = content(engine, READINGS.name, "v")
    assert standing == ([(1,), (2,)] if expected is Published else [])


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
@pytest.mark.parametrize(("on_failure", "expected"), [("block", Refused), ("warn", Published)])
def test_a_cast_that_loses_a_value_is_seen(
    engine: Engine, mode: WriteMode, on_failure: Any, expected: type
) -> None:
    done = outcome(
        engine, mode, castable("v", "int", on_failure=on_failure), ["1", "x", "3"], "string"
    )
    assert isinstance(done, expected)
    (result,) = done.results
    assert (result.failed_rows, result.total_rows, [row["v"] for row in result.sample]) == (
        1,
        3,
        ["x"],
    )


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (mean("v", 2, 3), ("holds", 2.5)),
        (mean("v", 3), ("fails", 2.5)),
        (mean("v", 1, warn_outside=(3, None)), ("warns", 2.5)),
        (total("v", high=4, on_failure="warn"), ("warns", 5)),
        (null_fraction("v", at_most=0.34), ("holds", None)),
        (null_fraction("v", at_most=0.3), ("fails", None)),
    ],
    ids=lambda rule: rule.sql if isinstance(rule, Rule) else None,
)
def test_figures_are_of_what_is_written(
    engine: Engine, mode: WriteMode, rule: Rule, found: tuple[str, Any]
) -> None:
    done = outcome(engine, mode, rule, [1, 4, None])
    (result,) = done.results
    assert (result.level, result.value, result.total_rows) == (*found, 3)
    assert isinstance(done, Refused) == (result.level == "fails")
