"""Incremental reads return the current names and types, also of older files."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import EVENTS, content, rows_of

pytestmark = pytest.mark.spark
RENAMED = replace(
    EVENTS, columns=[Column("id", "bigint"), Column("value", "bigint", renamed_from="v")]
)
EXTENDED = replace(RENAMED, columns=[Column("w", "int"), *RENAMED.columns])
VALUES = IcebergTable(
    "silver.values", "All values.", [Column("value", "bigint")], Append(once_by=())
)


def read_values(engine: Engine) -> list[tuple]:
    write(
        engine,
        VALUES,
        lambda events: events.select("value"),
        {"events": incremental(EVENTS.name)},
    )
    return content(engine, VALUES.name)


@pytest.mark.long
@glue_in_test_all
def test_rows_appended_before_and_after_a_rename_are_read_under_the_new_name(
    engine: Engine,
) -> None:
    write(engine, EVENTS, rows_of(engine, "id bigint, v int", [(1, 10)]))
    apply(engine, RENAMED)
    assert read_values(engine) == [(10,)]
    write(engine, RENAMED, rows_of(engine, "id bigint, value bigint", [(2, 20)]))
    write(engine, EXTENDED, rows_of(engine, "w int, id bigint, value bigint", [(3, 3, 30)]))
    assert read_values(engine) == [(10,), (20,), (30,)]
