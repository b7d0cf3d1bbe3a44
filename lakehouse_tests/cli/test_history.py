"""`lakehouse history`: what made the snapshots of a table, and how its columns came to be."""

import pytest

from lakehouse_tests.cli.outcomes import records

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


SOLD = (
    "CREATE NAMESPACE t; CREATE TABLE t.sold (id bigint, v int); INSERT INTO t.sold"
    " VALUES (1, 10), (2, 20);INSERT INTO t.sold VALUES (3, 30)"
)
"""A table that nobody declared: two commits, of two and of one row."""


def test_history_lists_snapshots_with_their_rows_and_refs(lakehouse, sold):
    tagged = "ALTER TABLE t.sold CREATE TAG monthly; DELETE FROM t.sold WHERE id = 3"
    lakehouse("sql", "--write", tagged)
    found = records(lakehouse("history", "t.sold", "--format", "json"))
    assert [
        (one["operation"], one["added_rows"], one["deleted_rows"], one["rows"]) for one in found
    ] == [
        ("append", 2, 0, 2),
        ("append", 1, 0, 3),
        ("delete", 0, 1, 2),
    ]
    assert [one["refs"] for one in found] == [[], ["monthly"], ["main"]]
    assert all(one["made_current_at"].endswith("Z") and one["kind"] is None for one in found)


@pytest.mark.usefixtures("sample_fruits")
def test_history_names_the_run_that_made_a_snapshot(lakehouse):
    # The first is empty: a branch needs one to begin at.
    empty, found = records(lakehouse("history", "silver.fruits", "--format", "json"))
    assert (empty["kind"], empty["rows"]) == (None, 0)
    assert (found["kind"], found["rows"], len(found["run_id"])) == ("write", 155, 36)
    lines = lakehouse("history", "silver.fruits").out
    assert lines[0].startswith("made current at")
    assert f" | {found['run_id'][:8]} | " in lines[3]
    assert lines[-1] == "(2 snapshots)"


def test_history_lists_a_snapshot_once_that_a_rollback_made_current_again(lakehouse, sold):
    first = records(lakehouse("history", "t.sold", "--format", "json"))[0]["snapshot_id"]
    lakehouse(
        "sql", "--write", f"CALL lakehouse.system.rollback_to_snapshot('t.sold', {first})"
    )
    found = records(lakehouse("history", "t.sold", "--format", "json"))
    assert [one["is_current_ancestor"] for one in found] == [True, False]
    lines = lakehouse("history", "t.sold").out
    assert "(rolled back)" in lines[3]
    assert lines[-1] == "(2 snapshots)"


def test_history_of_the_schema(lakehouse, sold):
    lakehouse(
        "sql",
        "--write",
        "ALTER TABLE t.sold RENAME COLUMN v TO price; ALTER TABLE t.sold ADD COLUMN note"
        " string;INSERT INTO t.sold VALUES (4, 40, 'x')",
    )
    lines = lakehouse("history", "t.sold", "--schema", "--format", "csv").out
    assert lines[0] == "at,snapshot_id,run_id,change,name,before,after"
    assert [line.split(",", 3)[3] for line in lines[1:]] == [
        "table created,,,2 columns",
        "column renamed,price,v,price",
        "column added,note,,string",
    ]
    assert lakehouse("history", "t.sold", "--schema").out[-1] == "(3 changes)"
