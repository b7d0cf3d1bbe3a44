"""The change between two snapshots: what was added, removed and changed, and nothing that was
merely carried along.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.diff.diff_plan import declared_key, plan_diff
from lakehouse.iceberg.diff.row_diff import Counts, apply_diff, count_changes, order_changes
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.pinned_frames import rows_at
from lakehouse.tables.table import Column, IcebergTable, Merge
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.declarations import (
    DAYS,
    EVENTS,
    MONDAY,
    PEOPLE,
    TUESDAY,
    put,
    run_of,
    snapshot_id,
)

pytestmark = pytest.mark.spark
T = "t.sold"
MERGE_ON_READ = ", ".join(
    f"'write.{word}.mode' = 'merge-on-read'" for word in ("delete", "update", "merge")
)


def changes(
    engine: Engine, *refs: str | int | None, table: str = T, key: Sequence[str] = ("id",)
) -> list[tuple]:
    """The rows of a diff, in their order."""
    planned = plan_diff(engine, table, *refs, key=key)
    return [tuple(row) for row in order_changes(planned, apply_diff(engine, planned)).collect()]


def run(engine: Engine, *statements: str) -> None:
    for statement in statements:
        engine.sql(statement.replace("SOLD", engine.catalog.sql_name(T)))


@pytest.fixture
def sold(filled_engine: Callable[..., Engine]) -> Engine:
    """A table of four rows in two partitions, each a file."""

    def fill(engine: Engine) -> None:
        engine.sql(f"CREATE NAMESPACE {engine.catalog.name}.t")
        run(
            engine,
            "CREATE TABLE SOLD (id bigint, v int, d date) PARTITIONED BY (days(d))",
            "INSERT INTO SOLD VALUES (1, 10, DATE '2024-01-01'), (2, 20, DATE '2024-01-01'), "
            "(3, 30, DATE '2024-01-02'), (4, 40, DATE '2024-01-02')",
        )

    return filled_engine(fill)


def test_a_partition_computed_again_shows_only_the_rows_that_differ(embedded_engine):
    put(
        embedded_engine,
        DAYS,
        [(MONDAY, 1, 1), (MONDAY, 2, 2), (TUESDAY, 3, 3)],
        run=run_of(MONDAY, TUESDAY),
    )
    put(
        embedded_engine,
        DAYS,
        [(MONDAY, 1, 1), (MONDAY, 9, 2), (MONDAY, 4, 4)],
        run=run_of(MONDAY),
    )
    assert changes(embedded_engine, table=DAYS.name, key=declared_key(DAYS)) == [
        ("before", MONDAY, 2, 2),
        ("after", MONDAY, 9, 2),
        ("added", MONDAY, 4, 4),
    ]


def test_a_row_that_moves_to_another_partition_is_changed(sold):
    run(sold, "UPDATE SOLD SET d = DATE '2024-01-02' WHERE id = 1")
    assert changes(sold) == [("before", 1, 10, MONDAY), ("after", 1, 10, TUESDAY)]


@pytest.mark.long
@pytest.mark.parametrize(
    "row_level",
    repeated(["copy-on-write", "merge-on-read"], tried=["copy-on-write"], rest="long"),
)
def test_a_merge_shows_what_it_changed(embedded_engine, row_level):
    table = IcebergTable(
        name="silver.stock",
        comment="",
        columns=[Column("id", "bigint"), Column("v", "int"), Column("m", "map<string,int>")],
        write=Merge(on=["id"]),
        row_level=row_level,
    )
    row = "id bigint, v int, m map<string,int>"
    put(embedded_engine, table, [(at, at, {"a": 1, "b": 2}) for at in range(9)], schema=row)
    put(
        embedded_engine,
        table,
        [(3, 99, {"b": 2, "a": 1}), (4, 4, {"b": 2, "a": 1}), (77, 7, {"a": 1})],
        schema=row,
    )
    assert changes(embedded_engine, table=table.name, key=declared_key(table)) == [
        ("before", 3, 3, {"a": 1, "b": 2}),
        ("after", 3, 99, {"a": 1, "b": 2}),
        ("added", 77, 7, {"a": 1}),
    ]


def test_a_compaction_is_no_change(sold):
    run(sold, f"ALTER TABLE SOLD SET TBLPROPERTIES ({MERGE_ON_READ})")
    run(
        sold,
        "INSERT INTO SOLD VALUES (5, 50, DATE '2024-01-01')",
        "DELETE FROM SOLD WHERE id = 1",
    )
    before = snapshot_id(sold, T)
    compact(sold)
    assert snapshot_id(sold, T) != before
    assert plan_diff(sold, T).is_empty
    assert changes(sold) == []


def test_without_a_key_rows_are_added_and_removed_as_often_as_they_stand(sold):
    run(sold, "INSERT INTO SOLD VALUES (1, 10, DATE '2024-01-01'), (1, 10, DATE '2024-01-01')")
    assert changes(sold, key=()) == [("added", 1, 10, MONDAY)] * 2
    run(
        sold,
        "DELETE FROM SOLD WHERE id = 1",
        "INSERT INTO SOLD VALUES (1, 10, DATE '2024-01-01')",
    )
    assert (
        changes(sold, read_history(sold, T).log[1][1], key=())
        == [("removed", 1, 10, MONDAY)] * 2
    )


def test_a_key_of_several_rows_that_differ_is_not_paired(sold):
    run(sold, "INSERT INTO SOLD VALUES (1, 11, DATE '2024-01-01')")
    before = snapshot_id(sold, T)
    run(sold, "UPDATE SOLD SET v = v + 100 WHERE id < 3")
    assert [row[:3] for row in changes(sold, before)] == [
        ("removed", 1, 10),
        ("removed", 1, 11),
        ("added", 1, 110),
        ("added", 1, 111),
        ("before", 2, 20),
        ("after", 2, 120),
    ]


def test_columns_are_followed_by_their_ids(sold):
    before = snapshot_id(sold, T)
    run(
        sold,
        "ALTER TABLE SOLD RENAME COLUMN v TO price",
        "ALTER TABLE SOLD ALTER COLUMN price TYPE bigint",
        "ALTER TABLE SOLD ADD COLUMN note string",
        "UPDATE SOLD SET price = 11 WHERE id = 1",
    )
    planned = plan_diff(sold, T, before, key=["id"])
    assert [column.name for column in planned.columns] == ["id", "price", "d", "note"]
    assert changes(sold, before) == [
        ("before", 1, 10, MONDAY, None),
        ("after", 1, 11, MONDAY, None),
    ]


def test_a_dropped_column_is_shown_as_it_was(sold):
    run(sold, "ALTER TABLE SOLD DROP COLUMN v", "ALTER TABLE SOLD ADD COLUMN v string")
    run(sold, "UPDATE SOLD SET v = 'x' WHERE id = 1")
    planned = plan_diff(sold, T)
    assert [column.name for column in planned.columns] == ["id", "d", "v", "v_dropped"]
    # The rows that an update carried into another file lost the column on the way.
    assert changes(sold)[:2] == [
        ("before", 1, MONDAY, None, 10),
        ("after", 1, MONDAY, "x", None),
    ]


def test_a_struct_with_a_new_field_is_compared_as_json(embedded_engine):
    embedded_engine.sql(f"CREATE NAMESPACE {embedded_engine.catalog.name}.t")
    run(
        embedded_engine,
        "CREATE TABLE SOLD (id bigint, s struct<a: int, b: array<struct<c: int>>>)",
        "INSERT INTO SOLD SELECT id, named_struct('a', 1, 'b', array(named_struct('c', 1)))"
        " FROM range(1, 3)",
        "ALTER TABLE SOLD ADD COLUMN s.b.element.d string",
        "UPDATE SOLD SET s.a = 2 WHERE id = 1",
    )
    assert changes(embedded_engine) == [
        ("before", 1, '{"a":1,"b":[{"c":1}]}'),
        ("after", 1, '{"a":2,"b":[{"c":1}]}'),
    ]


def test_two_branches_are_compared(sold):
    run(sold, "ALTER TABLE SOLD CREATE BRANCH one", "ALTER TABLE SOLD CREATE BRANCH two")
    run(
        sold,
        "INSERT INTO t.sold.branch_one VALUES (5, 50, DATE '2024-01-01')".replace(
            "t.sold", f"{sold.catalog.name}.t.sold"
        ),
    )
    run(sold, f"DELETE FROM {sold.catalog.name}.t.sold.branch_two WHERE id = 1")
    assert changes(sold, "one", "two") == [
        ("removed", 1, 10, MONDAY),
        ("removed", 5, 50, MONDAY),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "row_level",
    repeated(["copy-on-write", "merge-on-read"], tried=["merge-on-read"], rest="long"),
)
@pytest.mark.parametrize(
    "spec",
    repeated(
        ["years(at)", "months(at)", "hours(at)", "days(d), truncate(1, s)", "s, bucket(3, id)"],
        tried=["days(d), truncate(1, s)"],
        rest="long",
    ),
)
def test_it_is_what_a_comparison_of_all_rows_finds(embedded_engine, spec, row_level):
    engine = embedded_engine
    engine.sql(f"CREATE NAMESPACE {engine.catalog.name}.t")
    run(
        engine,
        "CREATE TABLE SOLD (id bigint, at timestamp, d date, s string, v int) PARTITIONED BY"
        f" ({spec}) TBLPROPERTIES ('write.delete.mode' = '{row_level}', 'write.update.mode' ="
        f" '{row_level}')",
        "INSERT INTO SOLD SELECT id, TIMESTAMP '2023-11-20 23:30:00Z' + make_interval(0, 0, 0,"
        " id, id), DATE '1969-12-25' + CAST(id AS int), if(id % 5 = 0, NULL, concat(CAST(id % 3"
        " AS string), 'x')), 0 FROM range(60)",
        "INSERT INTO SOLD VALUES (100, NULL, DATE '9999-12-31', NULL, NULL)",
    )
    before = snapshot_id(engine, T)
    run(
        engine,
        "DELETE FROM SOLD WHERE id IN (3, 100)",
        "UPDATE SOLD SET v = 1, at = at + INTERVAL 40 DAYS WHERE id % 20 = 7",
        "INSERT INTO SOLD VALUES (200, NULL, NULL, 'y', 1), (200, NULL, NULL, 'y', 1)",
    )
    then, now = (rows_at(engine, T, at) for at in (before, snapshot_id(engine, T)))
    found = changes(engine, before, key=())
    assert sorted(map(repr, found)) == sorted(
        repr((what, *row))
        for what, rows in (("removed", then.exceptAll(now)), ("added", now.exceptAll(then)))
        for row in rows.collect()
    )
    assert len(found) == 2 + 3 * 2 + 2


def test_changes_are_counted(sold):
    before = snapshot_id(sold, T)
    run(sold, "UPDATE SOLD SET v = 0 WHERE id < 3", "DELETE FROM SOLD WHERE id = 3")
    run(sold, "INSERT INTO SOLD VALUES (5, 50, DATE '2024-01-01')")
    planned = plan_diff(sold, T, before, key=["id"])
    assert count_changes(planned, apply_diff(sold, planned)) == Counts(
        added=1, removed=1, changed=2
    )


def test_a_table_without_a_snapshot_has_no_change(embedded_engine):
    embedded_engine.sql(f"CREATE NAMESPACE {embedded_engine.catalog.name}.t")
    run(embedded_engine, "CREATE TABLE SOLD (id bigint)")
    assert plan_diff(embedded_engine, T).is_empty
    assert changes(embedded_engine) == []


def test_a_key_that_is_no_column_is_wrong_usage(embedded_engine):
    put(embedded_engine, EVENTS, [(1, 1)])
    with pytest.raises(
        UsageError, match=r"The key of bronze\.events has 'nope'; expected columns of id, v\."
    ):
        plan_diff(embedded_engine, EVENTS.name, key=["nope"])


@pytest.mark.parametrize(("table", "key"), [(PEOPLE, ("name",)), (DAYS, ("id",)), (EVENTS, ())])
def test_the_key_follows_from_the_declaration(table: IcebergTable, key: tuple[str, ...]):
    assert declared_key(table) == key


def compact(engine: Engine) -> Any:
    catalog = engine.catalog.name
    engine.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => '{catalog}.{T}', options =>"
        " map('rewrite-all', 'true'))"
    )
