"""Columns are profiled by the query that evaluates the rules, over the rows of a write."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.iceberg.declarations import (
    DAYS,
    EVENTS,
    MONDAY,
    PEOPLE,
    TUESDAY,
    days,
    delivery,
    people,
    rows_of,
    run_of,
)

pytestmark = pytest.mark.spark


def measuring(table: IcebergTable, *names: str) -> IcebergTable:
    return replace(
        table,
        columns=[replace(column, profiled=column.name in names) for column in table.columns],
    )


def overwrite_partitions(engine: Engine, table: IcebergTable, v: int = 200) -> Outcome:
    """Write two days; one row has this `v`, and is refused where it is above 100."""
    given = days(engine, (MONDAY, 1, 1), (MONDAY, None, 2), (TUESDAY, v, 3), (TUESDAY, 5, 4))
    return write(engine, table, given, run=run_of(MONDAY, TUESDAY))


def merge(engine: Engine, table: IcebergTable) -> Outcome:
    delivered = delivery(engine, "a", [("1", "x"), ("two", "y"), (None, "z"), ("1", "u")])
    return write(engine, table, lambda **_: people(delivered()))


def test_of_overwritten_partitions_the_rows_that_stand_in_them(embedded_engine: Engine) -> None:
    done = overwrite_partitions(embedded_engine, measuring(DAYS, "v", "d"))

    assert done.profile == {
        "measured_rows": 3,
        "null_fraction.v": 1 / 3,
        "distinct_count.v": 2,
        "null_fraction.d": 0,
        "distinct_count.d": 2,
    }


def test_of_a_merge_the_rows_that_were_accepted(embedded_engine: Engine) -> None:
    """The id `two` is refused by its cast, and is neither NULL nor a value."""
    done = merge(embedded_engine, measuring(PEOPLE, "id", "changed_at"))

    assert done.profile == {
        "measured_rows": 3,
        "null_fraction.id": 1 / 3,
        "distinct_count.id": 1,
    }


def test_of_an_append_the_rows_that_are_new(embedded_engine: Engine) -> None:
    table = replace(measuring(EVENTS, "v"), rules=[not_null("id", on_failure="warn")])
    write(
        embedded_engine, table, rows_of(embedded_engine, "id bigint, v int", [(1, 1), (2, 2)])
    )
    done = write(
        embedded_engine,
        table,
        rows_of(embedded_engine, "id bigint, v int", [(3, None), (4, 4)]),
    )

    assert done.profile == {"measured_rows": 2, "null_fraction.v": 0.5, "distinct_count.v": 1}
