"""Appends: rows are added once, and what a re-run would add again is left out."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakehouse.errors import FrameMismatch, UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental, latest
from lakehouse.iceberg.rules.rows import between, castable, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Published, Refused, Unchanged
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import (
    DELIVERED,
    EVENTS,
    content,
    delivery,
    put,
    refs,
    snapshot_id,
)

pytestmark = pytest.mark.spark
COPIED = replace(EVENTS, name="silver.copied", write=Append(once_by=("id",)))


def test_publishes_rows_with_counts_from_metadata(engine: Engine) -> None:
    done = put(engine, EVENTS, [(1, 10), (2, 20)])
    assert isinstance(done, Published)
    assert (done.added_rows, done.row_count, done.operation, done.attempts) == (
        2,
        2,
        "append",
        1,
    )
    assert done.snapshot_id == snapshot_id(engine, EVENTS.name)
    assert content(engine, EVENTS.name) == [(1, 10), (2, 20)]


def test_stamps_the_commit(engine: Engine) -> None:
    done = put(engine, EVENTS, [(1, 10)], run=Run("run-7"))
    main = read_history(engine, EVENTS.name).main
    assert main is not None and main.commit is not None
    assert (main.commit.kind, main.commit.run_id, main.commit.write_id) == (
        "write",
        "run-7",
        done.write_id,
    )
    assert main.commit.declaration == EVENTS.declaration_hash


@whatever_the_catalog
def test_of_no_rows_commits_nothing(engine: Engine) -> None:
    put(engine, EVENTS, [(1, 10)])
    before = snapshot_id(engine, EVENTS.name)
    assert isinstance(put(engine, EVENTS, []), Unchanged)
    assert (snapshot_id(engine, EVENTS.name), refs(engine, EVENTS.name)) == (before, {"main"})


@whatever_the_catalog
@pytest.mark.parametrize(
    "arriving", [[("a", "sha-a")], None], ids=["keys known", "keys looked up"]
)
def test_of_a_delivery_again_adds_nothing(engine: Engine, arriving: list | None) -> None:
    compute = delivery(engine, "a", [("1", "x"), ("2", "y")])
    write(engine, DELIVERED, compute, arriving=arriving)
    before = snapshot_id(engine, DELIVERED.name)
    assert isinstance(write(engine, DELIVERED, compute, arriving=arriving), Unchanged)
    assert snapshot_id(engine, DELIVERED.name) == before


@glue_in_test_all
def test_of_an_old_and_a_new_delivery_adds_the_new_one(engine: Engine) -> None:
    write(engine, DELIVERED, delivery(engine, "a", [("1", "x")]))

    def both(**_):
        old, new = delivery(engine, "a", [("1", "x")]), delivery(engine, "b", [("2", "y")])
        return old().union(new())

    done = write(engine, DELIVERED, both, arriving=[("a", "sha-a"), ("b", "sha-b")])
    assert isinstance(done, Published) and done.added_rows == 1
    assert content(engine, DELIVERED.name, "name") == [("x",), ("y",)]


def test_takes_two_jobs_for_known_deliveries(embedded_engine: Engine, count_jobs) -> None:
    """One to write, one to look up which deliveries are there."""
    write(
        embedded_engine,
        DELIVERED,
        delivery(embedded_engine, "a", [("1", "x")]),
        arriving=[("a", "sha-a")],
    )
    with count_jobs() as counted:
        write(
            embedded_engine,
            DELIVERED,
            delivery(embedded_engine, "b", [("2", "y")]),
            arriving=[("b", "sha-b")],
        )
    assert counted.jobs <= 3


def test_rejects_a_frame_that_lacks_a_column(embedded_engine: Engine) -> None:
    with pytest.raises(FrameMismatch, match="lacks v; expected id, v"):
        put(embedded_engine, EVENTS, [(1,)], schema="id bigint")
    assert refs(embedded_engine, EVENTS.name) <= {"main"}


def test_rejects_a_frame_of_another_type(embedded_engine: Engine) -> None:
    with pytest.raises(FrameMismatch, match="column v is string in the frame; expected int"):
        put(embedded_engine, EVENTS, [(1, "2")], schema="id bigint, v string")


KEYED = IcebergTable(
    name="bronze.keyed",
    comment="Rows whose id is unique.",
    columns=[Column("id", "bigint"), Column("v", "int")],
    write=Append(once_by=()),
    rules=[unique("id"), between("v", 0, 2, on_failure="warn")],
)


@whatever_the_catalog
def test_finds_a_key_that_the_table_already_has(engine: Engine) -> None:
    put(engine, KEYED, [(1, 0), (2, 1)])
    done = put(engine, KEYED, [(2, 0), (3, 1)])
    assert isinstance(done, Refused)
    assert [(r.rule.name, r.failed_rows, list(r.sample)) for r in done.reasons] == [
        ("unique_id", 1, [{"id": 2, "rows": 2}])
    ]


@whatever_the_catalog
def test_warns_and_publishes(engine: Engine) -> None:
    done = put(engine, KEYED, [(1, 9)])
    assert isinstance(done, Published)
    assert [(r.rule.name, r.passed, r.failed_rows) for r in done.results] == [
        ("unique_id", True, 0),
        ("between_v", False, 1),
    ]


@pytest.mark.long
def test_of_an_input_that_is_read_in_full_again_adds_no_row_twice(
    embedded_engine: Engine,
) -> None:
    """Rows of the input went, or nobody knows any more what the table was computed from."""
    inputs = {"events": incremental(EVENTS.name)}
    put(embedded_engine, EVENTS, [(1, 10), (2, 20), (3, 30)])
    write(embedded_engine, COPIED, lambda events: events, inputs)
    embedded_engine.sql(
        f"DELETE FROM {embedded_engine.catalog.sql_name(EVENTS.name)} WHERE id = 1"
    )
    put(embedded_engine, EVENTS, [(4, 40)])
    done = write(embedded_engine, COPIED, lambda events: events, inputs)
    assert done.added_rows == 1
    catalog, name = embedded_engine.catalog.name, COPIED.name
    embedded_engine.sql(f"INSERT INTO {embedded_engine.catalog.sql_name(name)} VALUES (5, 50)")
    expire = f"table => '{catalog}.{name}', older_than => {literal(datetime.now(UTC))}, retain_last => 1"
    embedded_engine.sql(f"CALL {catalog}.system.expire_snapshots({expire})")
    assert read_history(embedded_engine, name).watermark(EVENTS.name) is None
    again = write(embedded_engine, COPIED, lambda events: events, inputs)
    assert isinstance(again, Unchanged) and len(content(embedded_engine, name)) == 5


def test_compares_delivered_text_by_its_type(embedded_engine: Engine) -> None:
    table = replace(
        EVENTS,
        columns=[Column("id", "bigint"), Column("at", "timestamp")],
        write=Append(once_by=("id", "at")),
        rules=[castable("id", "bigint"), castable("at", "timestamp", time_zone="Asia/Tokyo")],
    )
    for ids in ("1", "12x"):
        rows = [(id_, "2026-03-01T08:00") for id_ in ids]
        put(embedded_engine, table, rows, "id string, at string")
    assert content(embedded_engine, EVENTS.name, "id") == [(1,), (2,)]


def test_rows_without_a_key_or_a_source_are_rejected(embedded_engine: Engine) -> None:
    put(embedded_engine, EVENTS, [(1, 1), (None, 2)])
    inputs = {"events": latest(EVENTS.name)}

    with pytest.raises(
        UsageError, match=r"silver\.copied: rows were computed without a value in id"
    ):
        write(embedded_engine, COPIED, lambda events: events, inputs)
    asked = replace(COPIED, rules=[not_null("id")])
    write(embedded_engine, asked, lambda events: events, inputs)
    assert content(embedded_engine, COPIED.name) == [(1, 1)]
    assert content(embedded_engine, "silver.copied_quarantine", "v") == [("2",)]
