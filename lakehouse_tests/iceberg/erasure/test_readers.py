"""What reads a table neither sees the rows of an erased person again, nor misses others."""

from dataclasses import replace
from datetime import date

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.erasure_commits import touched_partitions
from lakehouse.iceberg.metadata.partition_metadata import changed_values
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.pinned_inputs import pin_since
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.iceberg.values.write_result import Pin
from lakehouse_tests.iceberg.erasure.people import ANNA, ORDERS, REQUEST, fill

MONDAY, TUESDAY = date(2024, 1, 1), date(2024, 1, 2)
DAYS = replace(ORDERS, partitioning=["day"])
READER = replace(ORDERS, name="gold.reader")


@pytest.fixture
def read_before(engine: Engine) -> int:
    """The snapshot that was read last, before the erasure."""
    fill(engine, DAYS, [(1, 7, None, None, MONDAY), (2, 8, None, None, TUESDAY)])
    main = read_history(engine, DAYS.name).main
    fill(engine, READER, [(1, 8, None, None, MONDAY)], inputs={DAYS.name: main.snapshot_id})
    return main.snapshot_id


def pin_now(engine: Engine, since: int) -> Pin:
    source = read_history(engine, DAYS.name)
    return pin_since(source, since, source.main.snapshot_id)


def test_new_rows_are_read_alone_across_an_erasure(engine: Engine, read_before: int) -> None:
    delete_rows(engine, DAYS, [ANNA], REQUEST)
    fill(engine, DAYS, [(3, 9, None, None, TUESDAY)])

    pin = pin_now(engine, read_before)
    assert (pin.since_snapshot_id, pin.rows) == (read_before, 1)


def test_rows_that_came_and_were_erased_since_are_not_read_as_they_came(
    engine: Engine, read_before: int
) -> None:
    fill(engine, DAYS, [(3, 7, None, None, TUESDAY), (4, 9, None, None, TUESDAY)])
    delete_rows(engine, DAYS, [ANNA], REQUEST)

    pin = pin_now(engine, read_before)
    assert (pin.since_snapshot_id, pin.rows) == (None, 2)
    assert "is a delete" in pin.note


def test_an_erasure_alone_is_no_news(engine: Engine, read_before: int) -> None:
    delete_rows(engine, DAYS, [ANNA], REQUEST)

    source, reader = (read_history(engine, table.name) for table in (DAYS, READER))

    assert not has_news(source, reader)
    loaded, until = engine.catalog.load(DAYS.name), source.main.snapshot_id
    assert changed_values(loaded, source, read_before, until, "day") == set()


def test_what_has_no_subject_is_told_the_partitions_to_compute_anew(
    engine: Engine, read_before: int
) -> None:
    delete_rows(engine, DAYS, [ANNA], REQUEST)
    delete_rows(engine, DAYS, [ANNA], REQUEST)

    assert touched_partitions(engine, DAYS.name, REQUEST, "day", rows=1) == {MONDAY}
    assert touched_partitions(engine, DAYS.name, "R-2", "day", rows=0) == set()
    assert touched_partitions(engine, DAYS.name, REQUEST, "customer_id", rows=1) is None
