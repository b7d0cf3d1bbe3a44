"""`lakehouse diff`: counts, rows and errors."""

import pytest

from lakehouse_tests.cli.outcomes import records

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


SOLD = (
    "CREATE NAMESPACE t; CREATE TABLE t.sold (id bigint, v int, note string);INSERT"
    " INTO t.sold VALUES (1, 10, NULL), (2, 20, NULL), (3, 30, NULL); ALTER TABLE"
    " t.sold CREATE TAG monthly;UPDATE t.sold SET v = 11 WHERE id = 1; DELETE FROM"
    " t.sold WHERE id = 2;INSERT INTO t.sold VALUES (4, 40, 'x')"
)
"""A table that nobody declared, in which a row was changed, one removed, and one added."""


def test_diff_prints_counts_then_rows(lakehouse, sold):
    ran = lakehouse("diff", "t.sold", "--from", "monthly", "--key", "id")
    assert (ran.code, ran.err) == (0, [])
    assert ran.out[0].startswith("t.sold from ")
    assert ran.out[0].endswith(" by id: 1 added, 1 removed, 1 changed")
    assert ran.out[1:] == [
        "change  | id | v  | note",
        "--------+----+----+-----",
        "before  |  1 | 10 | NULL",
        "after   |  1 | 11 | NULL",
        "removed |  2 | 20 | NULL",
        "added   |  4 | 40 | x",
        "(4 rows)",
    ]


def test_diff_takes_ids_and_moments(lakehouse, sold):
    history = records(lakehouse("history", "t.sold", "--format", "json"))
    points = ["--from", history[1]["made_current_at"], "--to", history[2]["snapshot_id"]]
    (found,) = records(lakehouse("diff", "lakehouse.t.sold", *points, "--format", "json"))
    assert found == {"change": "removed", "id": 2, "v": 20, "note": None}


def test_the_summary_is_one_row_for_programs(lakehouse, sold):
    command = "diff t.sold --from monthly --summary --key id --format json"
    (found,) = records(lakehouse(*command.split()))
    ids = [
        one["snapshot_id"]
        for one in records(lakehouse("history", "t.sold", "--format", "json"))
    ]
    assert found == {"from": ids[0], "to": ids[-1], "added": 1, "removed": 1, "changed": 1}


def test_personal_values_are_masked(lakehouse, monkeypatch):
    from lakehouse.cli.call_context import State
    from lakehouse.tables.table import Append, Column, IcebergTable

    table = IcebergTable(
        "t.people",
        "",
        [Column("id", "bigint"), Column("email", "string", personal=True)],
        write=Append(once_by=()),
    )
    monkeypatch.setattr(State, "declared", {"t.people": table})
    lakehouse(
        "sql",
        "CREATE NAMESPACE t; CREATE TABLE t.people (id bigint, email string, phone string)",
        "--write",
    )
    lakehouse(
        "sql", "--write", "INSERT INTO t.people VALUES (1, 'ann@example.org', '555 0100')"
    )
    (found,) = records(lakehouse("diff", "t.people", "--format", "json"))
    assert found["id"] == 1
    assert found["email"].startswith("masked:")
    # The declaration does not have this column: nobody says that it is not personal.
    assert found["phone"].startswith("masked:")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--from", "gone"], 1, "t.sold has no tag or branch 'gone'"),
        (["--from", "12"], 1, "t.sold has no snapshot 12; it keeps 4 snapshots"),
        (
            ["--from", "2024-01-01T00:00:00"],
            2,
            "has no time zone; expected one, such as 2024-01-01T00:00:00Z",
        ),
        (["--from", "2024-01-01T00:00:00Z"], 1, "its history starts at"),
        (["--key", ""], 2, "The key of t.sold has ''; expected columns of"),
        (["--key", "id,nope"], 2, "has 'nope'; expected columns of id, v, note"),
    ],
)
def test_what_cannot_be_compared_is_named(lakehouse, sold, arguments, code, said):
    ran = lakehouse("diff", "t.sold", *arguments)
    assert (ran.code, ran.out, len(ran.err)) == (code, [], 1)
    assert said in ran.err[0]
