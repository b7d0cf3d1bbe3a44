"""Compaction: fewer files, the same rows, and nothing else is touched."""

from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.iceberg_release import IcebergRelease
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.upkeep.compaction import compact
from lakehouse_tests.conftest import newer_iceberg, with_format_3
from lakehouse_tests.iceberg.upkeep.tables import (
    MERGE_ON_READ,
    NAME,
    TARGET_BYTES,
    contents,
    create,
    rows,
    size_bytes,
)

SCATTERED = "SELECT /*+ REPARTITION(3) */"
"""Three small files a commit."""


ORDERABLE = [
    "binary",
    "boolean",
    "date",
    "double",
    "float",
    "int",
    "string",
    "timestamp",
    "timestamp_ntz",
]


def compact_table(engine: Engine, **options: Any) -> StepResult:
    return compact(engine, NAME, target_bytes=TARGET_BYTES, **options)


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

    result = compact_table(embedded_engine)

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

    again = compact_table(embedded_engine)

    assert again.outcome == "skipped"
    assert read_history(embedded_engine, NAME).main == history.main


@pytest.mark.parametrize(
    ("version", "partitioning"),
    [
        ("2", "part"),
        pytest.param("2", "", marks=pytest.mark.long),
        pytest.param("3", "", marks=with_format_3),
        pytest.param("3", "part", marks=[pytest.mark.long, with_format_3]),
    ],
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

    result = compact_table(embedded_engine)

    assert (result.outcome, result.reason) == ("done", "")
    assert contents(embedded_engine) == ["data"] * (2 if partitioning else 1)
    assert rows(embedded_engine) == before
    assert len(before) == read_history(embedded_engine, NAME).main.rows


@newer_iceberg("cannot be told how many files to compact at once")
def test_a_large_table_is_compacted_in_chunks_within_the_bytes(
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

    limited = compact_table(embedded_engine, max_bytes=chunk_bytes, chunk_bytes=chunk_bytes)

    assert (limited.outcome, replaces(embedded_engine)) == ("done", 1)

    result = compact_table(embedded_engine, chunk_bytes=chunk_bytes)

    assert result.outcome == "done"
    assert replaces(embedded_engine) > 2
    assert rows(embedded_engine) == before
    assert result.step_metrics["files_after"] < limited.step_metrics["files_before"] / 2


def test_rows_are_sorted_where_that_is_declared(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint, part int")
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} id, -id FROM range(30)")

    result = compact_table(embedded_engine, sort_by=["part"])

    assert result.outcome == "done"
    in_file = [row["part"] for row in embedded_engine.sql(f"SELECT part FROM {sick}").collect()]
    assert in_file == sorted(in_file)


def test_iceberg_has_a_z_order_of_some_types(embedded_engine: Engine) -> None:
    orderable = {kind: kind for kind in ORDERABLE}
    columns = orderable | {"decimal": "decimal(10,2)"}
    declared = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    sick = create(embedded_engine, f"{declared}, part int", "part")
    empty = ", ".join(f"CAST(NULL AS {kind})" for kind in columns.values())
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} {empty}, 1 FROM range(9)")

    for name in ("decimal", "part"):
        with pytest.raises(Exception, match=r"(?i)z-?order"):
            compact_table(embedded_engine, sort_by=[name], z_order=True)
    result = compact_table(embedded_engine, sort_by=list(orderable), z_order=True)
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

    engine = replace(embedded_engine, catalog=old)
    result = compact_table(engine, sort_by=["day", "id"], z_order=True)

    assert result.outcome == "done"
    assert result.reason.startswith("sorted by columns in turn: Iceberg 1.9.2 has no z-order")
    in_file = list(map(tuple, embedded_engine.sql(f"SELECT day, id FROM {sick}").collect()))
    assert in_file == sorted(in_file) and len(in_file) == 30


def test_it_does_nothing_while_somebody_writes(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint")
    embedded_engine.sql(f"INSERT INTO {sick} {SCATTERED} id FROM range(30)")
    main = read_history(embedded_engine, NAME).main

    with table_lock(embedded_engine, NAME):
        result = compact_table(embedded_engine)

    assert (result.outcome, result.reason) == ("skipped", f"{NAME} is being written")
    assert read_history(embedded_engine, NAME).main == main


def test_a_lone_small_file_stays(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint")
    embedded_engine.sql(f"INSERT INTO {sick} SELECT /*+ REPARTITION(1) */ id FROM range(3)")

    assert compact_table(embedded_engine).outcome == "skipped"
