"""What is read since the last time is read under the names and types of now, however old its
files are.
"""

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.evolve.planning import apply
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Published
from lakehouse.iceberg.read.inputs import changed_keys, incremental
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, OverwritePartitions
from lakehouse_tests.conftest import newer_iceberg
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import EVENTS, MONDAY, content, rows_of, run_of

pytestmark = pytest.mark.spark
RENAMED = replace(
    EVENTS, columns=[Column("id", "bigint"), Column("value", "bigint", renamed_from="v")]
)
EXTENDED = replace(RENAMED, columns=[Column("w", "int"), *RENAMED.columns])
VALUES = IcebergTable(
    "silver.values", "All values.", [Column("value", "bigint")], Append(once_by=())
)
VISITS = IcebergTable(
    name="silver.visits",
    comment="Who came on which day.",
    columns=[Column("d", "date"), Column("guest", "int")],
    partitioning=["days(d)"],
    write=OverwritePartitions(by="d"),
)
VISITS_NOW = replace(
    VISITS,
    columns=[
        Column("day", "date", renamed_from="d"),
        Column("guest", "bigint"),
        Column("host", "string"),
    ],
    partitioning=["days(day)", "bucket(4, guest)"],
    write=OverwritePartitions(by="day"),
)


def read_values(engine: Engine) -> list[tuple]:
    """Append what is new, and return all that there is."""
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


def guests(engine: Engine, key: str, by: str) -> list[int]:
    """Compute a table of guests from the visits that changed, and return whose those are."""
    table = IcebergTable(
        "gold.guests", "Who ever came.", [Column(key, "bigint")], Merge(on=key)
    )
    seen: list[int] = []

    def compute(found: DataFrame) -> DataFrame:
        seen.extend(sorted(row[0] for row in found.collect()))
        return found

    assert isinstance(
        write(engine, table, compute, {"found": changed_keys(VISITS.name, of=key, by=by)}),
        Published,
    )
    return seen


@pytest.mark.long
@glue_in_test_all
@newer_iceberg("plans no read by a column of the partitioning that was renamed")
def test_keys_of_changed_days_are_told_across_renames_wider_types_and_specs(
    engine: Engine,
) -> None:
    write(
        engine, VISITS, rows_of(engine, "d date, guest int", [(MONDAY, 1)]), run=run_of(MONDAY)
    )
    assert guests(engine, "guest", "d") == [1]
    apply(engine, VISITS_NOW)
    rows = rows_of(engine, "day date, guest bigint, host string", [(MONDAY, 2, "h")])
    write(engine, VISITS_NOW, rows, run=run_of(MONDAY))
    assert guests(engine, "guest", "day") == [1, 2]
