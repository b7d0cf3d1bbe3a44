"""Overwrites: the whole table, or the run's partitions, and nothing else."""

from dataclasses import replace

import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.values.write_result import Published, Refused
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import (
    DAYS,
    MONDAY,
    TOTALS,
    TUESDAY,
    WEDNESDAY,
    content,
    data_files,
    put,
    refs,
    run_of,
    snapshot_id,
)

pytestmark = pytest.mark.spark


@glue_in_test_all
def test_of_the_table_replaces_every_row(engine: Engine) -> None:
    put(engine, TOTALS, [(1,), (2,)])
    put(engine, TOTALS, [(3,)])
    assert content(engine, TOTALS.name) == [(3,)]


def test_of_a_day_leaves_the_files_of_other_days(engine: Engine) -> None:
    put(engine, DAYS, [(MONDAY, 1, 1), (TUESDAY, 2, 2)], run=run_of(MONDAY, TUESDAY))
    monday = {path for path in data_files(engine, DAYS.name) if str(MONDAY) in path}
    done = put(engine, DAYS, [(TUESDAY, 5, 2)], run=run_of(TUESDAY))
    assert isinstance(done, Published) and (done.row_count, done.partition_row_count) == (2, 1)
    assert monday and monday < data_files(engine, DAYS.name)
    assert content(engine, DAYS.name, "v") == [(1,), (5,)]


@whatever_the_catalog
def test_of_a_day_by_no_rows_empties_it_alone(engine: Engine) -> None:
    put(engine, DAYS, [(MONDAY, 1, 1), (TUESDAY, 2, 2)], run=run_of(MONDAY, TUESDAY))
    put(engine, DAYS, [], run=run_of(MONDAY))
    assert content(engine, DAYS.name, "v") == [(2,)]


@whatever_the_catalog
def test_blocks_rows_outside_the_runs_days(engine: Engine) -> None:
    put(engine, DAYS, [(MONDAY, 1, 1)], run=run_of(MONDAY))
    before = snapshot_id(engine, DAYS.name)
    done = put(engine, DAYS, [(MONDAY, 2, 1), (WEDNESDAY, 3, 2)], run=run_of(MONDAY))
    assert isinstance(done, Refused)
    (reason,) = done.reasons
    assert (reason.rule.name, reason.failed_rows) == ("in_partitions", 1)
    assert list(reason.sample) == [{"d": str(WEDNESDAY), "v": 3, "id": 2}]
    assert (snapshot_id(engine, DAYS.name), refs(engine, DAYS.name)) == (
        before,
        {"main", done.branch},
    )


def test_needs_the_runs_partitions(embedded_engine: Engine) -> None:
    with pytest.raises(UsageError, match="is written by partitions of d, and the run has none"):
        put(embedded_engine, DAYS, [(MONDAY, 1, 1)])
    assert not any(ref.startswith("audit_") for ref in refs(embedded_engine, DAYS.name))


@glue_in_test_all
def test_works_across_a_change_of_the_partition_spec(engine: Engine) -> None:
    """A file of a month answers the predicate of a day only in part."""
    monthly = replace(DAYS, partitioning=["months(d)"])
    put(engine, monthly, [(MONDAY, 1, 1), (TUESDAY, 2, 2)], run=run_of(MONDAY, TUESDAY))
    apply(engine, DAYS)
    put(engine, DAYS, [(WEDNESDAY, 3, 3)], run=run_of(WEDNESDAY))
    assert {file.spec_id for file in files(engine, DAYS.name)} == {0, 1}
    for v in (7, 8):
        put(engine, DAYS, [(TUESDAY, v, 2)], run=run_of(TUESDAY))
    assert content(engine, DAYS.name, "v") == [(1,), (3,), (8,)]


@glue_in_test_all
def test_quarantines_and_publishes_the_rest(engine: Engine) -> None:
    done = put(engine, DAYS, [(MONDAY, 1, 1), (MONDAY, 200, 2)], run=run_of(MONDAY))
    assert isinstance(done, Published) and done.quarantined is not None
    assert (done.row_count, done.quarantined.rows) == (1, 1)
    assert content(engine, "silver.days_quarantine", "v", "_reasons") == [
        ("200", ["between_v"])
    ]
