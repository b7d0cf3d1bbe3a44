"""Compaction: fewer files, the same rows, and nothing else is touched."""

from dataclasses import replace
from itertools import product

import pytest

from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.iceberg_release import IcebergRelease
from lakehouse.iceberg.metadata.spark_line import spark_line
from lakehouse.iceberg.upkeep.compact import compact
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.tables.layout_validation import Z_ORDERABLE
from lakehouse_tests.conftest import newer_iceberg
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.upkeep.tables import (
    MERGE_ON_READ,
    NAME,
    TARGET_BYTES,
    contents,
    create,
    paths_by_partition,
    rows,
    size_bytes,
)

SCATTERED = "SELECT /*+ REPARTITION(3) */"
"""Three small files a commit."""


def replaces(engine: Engine) -> int:
    """Return how many snapshots only moved rows to other files."""
    line = read_history(engine, NAME).line
    return sum(snapshot.operation == "replace" for snapshot in line)


def test_small_files_become_one_and_what_main_says_of_its_inputs_stays(
    embedded_engine: Engine,
) -> None:
    sick = create(embedded_engine, "id bigint, note string")
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} id, uuid() FROM range(2000)")
    embedded_engine.sql(f"ALTER TABLE {sick} CREATE TAG month_end")
    embedded_engine.sql(f"ALTER TABLE {sick} CREATE BRANCH experiment")
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} id, uuid() FROM range(1000)")
    properties = CommitProperties("write", "w", inputs={"bronze.events": 17})
    commit_without_rows(embedded_engine, NAME, properties.to_summary())
    before, input_bytes = rows(embedded_engine), size_bytes(embedded_engine)
    of_tag = rows(embedded_engine, "VERSION AS OF 'month_end'")
    refs = read_history(embedded_engine, NAME).refs

    result = compact(embedded_engine, NAME, target_bytes=TARGET_BYTES)

    assert (result.outcome, result.reason) == ("done", "")
    assert contents(embedded_engine) == ["data"]
    assert rows(embedded_engine) == before
    assert rows(embedded_engine, "VERSION AS OF 'month_end'") == of_tag
    history = read_history(embedded_engine, NAME)
    assert {**history.refs, "main": 0} == {**refs, "main": 0}
    assert history.main.commit.inputs == {"bronze.events": 17}
    assert result.step_metrics["files_before"] == 6
    assert result.step_metrics["files_after"] == 1
    assert result.step_metrics["rewritten_bytes"] == input_bytes
    assert (
        result.step_metrics["added_bytes"] == size_bytes(embedded_engine) <= 1.1 * input_bytes
    )

    again = compact(embedded_engine, NAME, target_bytes=TARGET_BYTES)

    assert again.outcome == "skipped"
    assert again.reason == "no partition has files that gain by it"
    assert read_history(embedded_engine, NAME).main == history.main


def test_only_the_named_partition_is_rewritten_whatever_it_is_made_by(
    embedded_engine: Engine,
) -> None:
    sick = create(
        embedded_engine,
        "id bigint, at timestamp, region string, zip string",
        "days(at), bucket(2, id), region, truncate(2, zip)",
    )
    # Two values of each field, and rows without any: 17 partitions.
    every = (
        "SELECT n DIV 8 AS id, timestamp'2024-01-01 12:00:00' + make_interval(0, 0, 0,"
        " CAST(n % 2 AS INT)) AS at, concat('r''', n DIV 2 % 2) AS region, concat('10', n DIV"
        " 4 % 2, '00') AS zip FROM range(16) AS numbers(n)"
    )
    for _ in range(2):
        embedded_engine.sql(f"INSERT INTO {sick} {every} UNION ALL SELECT 0, NULL, NULL, NULL")
    embedded_engine.sql(f"INSERT INTO {sick} {every} UNION ALL SELECT 0, NULL, NULL, NULL")
    before, rows_before = paths_by_partition(embedded_engine), rows(embedded_engine)
    without_values = next(key for key in before if dict(key.values)["region"] is None)
    named = [next(key for key in before if key != without_values), without_values]

    result = compact(embedded_engine, NAME, named, target_bytes=TARGET_BYTES)

    after = paths_by_partition(embedded_engine)
    assert result.outcome == "done"
    for key in named:
        assert len(after.pop(key)) == 1
        del before[key]
    assert after == before
    assert rows(embedded_engine) == rows_before


def test_files_of_an_old_partition_spec_move_into_the_new_one(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint, at timestamp", "months(at)")
    january = "SELECT id, timestamp'2024-01-05' AS at FROM range(4)"
    embedded_engine.sql(f"INSERT INTO {sick} {january}")
    embedded_engine.sql(f"INSERT INTO {sick} {january}")
    embedded_engine.sql(f"ALTER TABLE {sick} REPLACE PARTITION FIELD months(at) WITH days(at)")
    embedded_engine.sql(f"INSERT INTO {sick} VALUES (9, timestamp'2024-02-01')")
    embedded_engine.sql(f"INSERT INTO {sick} VALUES (9, timestamp'2024-02-01')")
    before, rows_before = paths_by_partition(embedded_engine), rows(embedded_engine)
    (old,) = (key for key in before if key.spec_id == 0)
    (new,) = (key for key in before if key.spec_id != 0)

    result = compact(embedded_engine, NAME, [old], target_bytes=TARGET_BYTES)

    after = paths_by_partition(embedded_engine)
    assert result.outcome == "done"
    assert {key.spec_id for key in after} == {new.spec_id}
    assert after[new] == before[new]
    assert rows(embedded_engine) == rows_before


def test_files_of_the_right_size_move_into_the_new_partition_spec_too(
    embedded_engine: Engine,
) -> None:
    sick = create(embedded_engine, "id bigint, at timestamp", "months(at)")
    insert = f"INSERT INTO {sick} SELECT /*+ REPARTITION(1) */ id, at FROM range(1000)"
    moments = {
        "january": "timestamp'2024-01-05' + make_interval(0, 0, 0, CAST(id % 3 AS INT))",
        "march": "timestamp'2024-03-01'",
    }
    for at in (moments["january"], moments["january"], moments["march"]):
        embedded_engine.sql(insert.replace("at FROM", f"{at} AS at FROM"))
    embedded_engine.sql(f"ALTER TABLE {sick} REPLACE PARTITION FIELD months(at) WITH days(at)")
    embedded_engine.sql(f"INSERT INTO {sick} VALUES (9, timestamp'2024-02-01')")
    before, rows_before = paths_by_partition(embedded_engine), rows(embedded_engine)
    january, march = sorted((key for key in before if key.spec_id == 0), key=str)
    (february,) = (key for key in before if key.spec_id != 0)
    target_bytes = size_bytes(embedded_engine) // 3

    result = compact(embedded_engine, NAME, [january], target_bytes=target_bytes)

    after = paths_by_partition(embedded_engine)
    assert (result.outcome, result.step_metrics["rewritten_files"]) == ("done", 2)
    assert january not in after
    assert len(after) == 2 + 3
    assert (after[february], after[march]) == (before[february], before[march])
    assert rows(embedded_engine) == rows_before

    # A lone file moves as well.
    assert compact(embedded_engine, NAME, target_bytes=target_bytes).outcome == "done"
    assert {key.spec_id for key in paths_by_partition(embedded_engine)} == {february.spec_id}
    assert rows(embedded_engine) == rows_before
    assert compact(embedded_engine, NAME, target_bytes=target_bytes).outcome == "skipped"


def test_a_large_partition_of_an_old_spec_moves_in_chunks(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint, at timestamp", "months(at)")
    for day in (5, 6, 7):
        embedded_engine.sql(
            f"INSERT INTO {sick} SELECT /*+ REPARTITION(1) */ id, timestamp'2024-01-0{day}' FROM"
            " range(1000)"
        )
    embedded_engine.sql(f"ALTER TABLE {sick} REPLACE PARTITION FIELD months(at) WITH days(at)")
    rows_before, a_file = rows(embedded_engine), size_bytes(embedded_engine) // 3

    result = compact(
        embedded_engine, NAME, target_bytes=a_file, chunk_bytes=a_file + a_file // 2
    )

    assert (result.outcome, result.step_metrics["rewritten_files"]) == ("done", 3)
    assert replaces(embedded_engine) == 3
    assert {key.spec_id for key in paths_by_partition(embedded_engine)} == {1}
    assert rows(embedded_engine) == rows_before


@pytest.mark.parametrize(
    ("version", "partitioning"),
    repeated(product("23", ["", "part"]), tried=[("2", "part"), ("3", "")], rest="long"),
)
def test_deleted_rows_and_their_delete_files_are_gone(
    embedded_engine: Engine, version: str, partitioning: str
) -> None:
    properties = {**MERGE_ON_READ, "format-version": version}
    sick = create(embedded_engine, "id bigint, part int", partitioning, properties)
    embedded_engine.sql(f"INSERT INTO {sick} SELECT id, id % 2 FROM range(40)")
    embedded_engine.sql(f"INSERT INTO {sick} SELECT id, id % 2 FROM range(40, 80)")
    embedded_engine.sql(f"DELETE FROM {sick} WHERE id IN (3, 4, 50)")
    embedded_engine.sql(f"UPDATE {sick} SET id = id + 1000 WHERE id IN (4, 7, 51)")
    assert set(contents(embedded_engine)) == {"data", "position deletes"}
    before = rows(embedded_engine)

    result = compact(embedded_engine, NAME, target_bytes=TARGET_BYTES)

    assert (result.outcome, result.reason) == ("done", "")
    assert contents(embedded_engine) == ["data"] * (2 if partitioning else 1)
    assert rows(embedded_engine) == before
    assert len(before) == read_history(embedded_engine, NAME).main.rows


@newer_iceberg("cannot be told how many files to compact at once")
def test_a_large_partition_is_done_in_turns_between_which_the_lock_is_free(
    embedded_engine: Engine,
) -> None:
    sick = create(embedded_engine, "id bigint, part int", "part")
    for _ in range(2):
        embedded_engine.sql(
            f"INSERT INTO {sick} SELECT /*+ REPARTITION(4) */ id, CAST(id % 8 < 2 AS INT) FROM"
            " range(400)"
        )
    before = rows(embedded_engine)
    chunk_bytes = size_bytes(embedded_engine) // 4

    result = compact(embedded_engine, NAME, target_bytes=TARGET_BYTES, chunk_bytes=chunk_bytes)

    assert result.outcome == "done"
    assert replaces(embedded_engine) > 2
    assert rows(embedded_engine) == before
    assert result.step_metrics["files_after"] < result.step_metrics["files_before"] / 2


def test_rows_are_sorted_where_that_is_declared(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint, part int")
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} id, -id FROM range(30)")

    result = compact(embedded_engine, NAME, target_bytes=TARGET_BYTES, sort_by=["part"])

    assert result.outcome == "done"
    in_file = [row["part"] for row in embedded_engine.sql(f"SELECT part FROM {sick}").collect()]
    assert in_file == sorted(in_file)

    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} id, -id FROM range(30)")
    result = compact(
        embedded_engine, NAME, target_bytes=TARGET_BYTES, sort_by=["part", "id"], z_order=True
    )
    assert result.outcome == "done"
    assert len(rows(embedded_engine)) == 60


def test_a_declaration_refuses_what_iceberg_has_no_z_order_of(embedded_engine: Engine) -> None:
    orderable = {kind: kind for kind in sorted(Z_ORDERABLE)}
    columns = orderable | {"decimal": "decimal(10,2)"}
    declared = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    sick = create(embedded_engine, f"{declared}, part int", "part")
    empty = ", ".join(f"CAST(NULL AS {kind})" for kind in columns.values())
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} {empty}, 1 FROM range(9)")

    def z_order(*names: str) -> StepResult:
        return compact(
            embedded_engine, NAME, target_bytes=TARGET_BYTES, sort_by=names, z_order=True
        )

    for name in ("decimal", "part"):
        with pytest.raises(Exception, match=r"(?i)z-?order"):
            z_order(name)
    result = z_order(*orderable)
    assert result.outcome == "done"
    lacking = embedded_engine.catalog.iceberg.lacks_z_order_of(orderable)
    assert result.reason == (f"sorted by columns in turn: {lacking}" if lacking else "")


def test_where_there_is_no_z_order_of_a_column_rows_are_sorted_in_turn(
    embedded_engine: Engine,
) -> None:
    sick = create(embedded_engine, "day date, id bigint")
    for part in range(3):
        embedded_engine.sql(
            f"INSERT INTO {sick} {SCATTERED} date_add(DATE'2026-01-01', CAST(id % 5 AS int)),"
            f" id FROM range({part}, 30, 3)"
        )
    old = replace(embedded_engine.catalog, iceberg=IcebergRelease("1.9.2"))

    result = compact(
        replace(embedded_engine, catalog=old),
        NAME,
        target_bytes=TARGET_BYTES,
        sort_by=["day", "id"],
        z_order=True,
    )

    line = spark_line()
    assert (result.outcome, result.reason) == (
        "done",
        f"sorted by columns in turn: Iceberg 1.9.2 has no z-order of day (date) on Spark {line}",
    )
    in_file = [
        (row["day"], row["id"])
        for row in embedded_engine.sql(f"SELECT * FROM {sick}").collect()
    ]
    assert in_file == sorted(in_file) and len(in_file) == 30


def test_it_does_nothing_while_somebody_writes(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint")
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} id FROM range(30)")
    main = read_history(embedded_engine, NAME).main

    with table_lock(embedded_engine, NAME):
        result = compact(embedded_engine, NAME, target_bytes=TARGET_BYTES)

    assert (result.outcome, result.reason) == ("skipped", f"{NAME} is being written")
    assert read_history(embedded_engine, NAME).main == main


def test_a_lone_small_file_stays(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint")
    embedded_engine.sql(f"INSERT INTO {sick} SELECT /*+ REPARTITION(1) */ id FROM range(3)")

    assert compact(embedded_engine, NAME, target_bytes=TARGET_BYTES).outcome == "skipped"
