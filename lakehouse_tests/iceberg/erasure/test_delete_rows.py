"""Rows of a person leave a table for its readers, and nobody else's do."""

from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pytest
from pyiceberg.types import LongType

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import audit_branch, new_write_id
from lakehouse.iceberg.erasure import delete_rows as delete_rows_module
from lakehouse.iceberg.erasure.delete_rows import count_rows, delete_rows
from lakehouse.iceberg.erasure.find_rows import FileRows, find_rows
from lakehouse.iceberg.erasure.position_deletes import live_delete_files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.tables.person import Person
from lakehouse.tables.table import Column
from lakehouse_tests.iceberg.erasure.people import (
    ANNA,
    DELIVERED,
    DELIVERED_ROWS,
    NESTED,
    ORDERS,
    REQUEST,
    branch_off,
    contacts_of,
    content,
    data_paths,
    fill,
    paths_with,
    tag,
)
from lakehouse_tests.iceberg.position_deletes import delete_first_rows

MONDAY, TUESDAY = date(2024, 1, 1), date(2024, 1, 2)
ROWS = [
    (1, 7, "anna@example.org", "first", MONDAY),
    (2, 8, "ben@example.org", None, MONDAY),
    (3, None, None, None, MONDAY),
]
MORE = [(4, 7, "anna@example.org", None, TUESDAY), (5, 70, "cleo@example.org", "", TUESDAY)]
OTHERS = [(6, 9, "dora@example.org", "7", TUESDAY)]


@pytest.fixture
def filled(engine: Engine) -> Engine:
    for rows in (ROWS, MORE, OTHERS):
        fill(engine, ORDERS, rows)
    return engine


def test_rows_go_from_main_and_other_rows_and_files_stay(filled: Engine) -> None:
    before = data_paths(filled, ORDERS)

    deleted = delete_rows(filled, ORDERS, [ANNA], REQUEST)

    assert deleted.rows == {"main": 2}
    assert content(filled, ORDERS) == sorted([*ROWS[1:], MORE[1], *OTHERS], key=repr)
    assert data_paths(filled, ORDERS) == before
    main = read_history(filled, ORDERS.name).main
    assert (main.operation, main.commit.kind, main.rows) == ("delete", "erasure", 4)


def test_what_has_none_of_their_rows_gets_no_commit(filled: Engine) -> None:
    delete_rows(filled, ORDERS, [ANNA], REQUEST)
    before = read_history(filled, ORDERS.name).refs

    again = delete_rows(filled, ORDERS, [ANNA], REQUEST)

    assert again.rows == {}
    assert [(erased.ref, erased.rows) for erased in again.of_request] == [("main", 2)]
    assert read_history(filled, ORDERS.name).refs == before


def test_branches_and_tags_lose_them_too(filled: Engine) -> None:
    tag(filled, ORDERS, "month_end")
    branch_off(filled, ORDERS, "refused_x")
    fill(filled, ORDERS, [(7, 7, "anna@example.org", None, MONDAY)], branch="refused_x")
    tagged = read_history(filled, ORDERS.name).refs["month_end"]
    assert count_rows(filled, ORDERS, [ANNA]) == {"main": 2, "month_end": 2, "refused_x": 3}

    deleted = delete_rows(filled, ORDERS, [ANNA], REQUEST)

    assert deleted.rows == {"main": 2, "month_end": 2, "refused_x": 3}
    assert count_rows(filled, ORDERS, [ANNA]) == {}
    others = sorted([*ROWS[1:], MORE[1], *OTHERS], key=repr)
    assert content(filled, ORDERS, "month_end") == others
    assert content(filled, ORDERS, "refused_x") == others
    refs = filled.catalog.load(ORDERS.name).metadata.refs
    assert refs["month_end"].snapshot_id == deleted.moved_tags["month_end"] != tagged
    assert refs["month_end"].max_ref_age_ms == 86_400_000
    head = read_history(filled, ORDERS.name).head("refused_x")
    assert head.commit.run_id == "run"


def test_a_branch_that_is_written_is_skipped_and_named(filled: Engine) -> None:
    staged = audit_branch(new_write_id())
    branch_off(filled, ORDERS, staged)

    deleted = delete_rows(filled, ORDERS, [ANNA], REQUEST)

    assert deleted.rows == {"main": 2}
    assert list(deleted.skipped) == [staged]


def test_delivered_ids_are_found_in_each_form(engine: Engine) -> None:
    fill(engine, DELIVERED, DELIVERED_ROWS)

    assert delete_rows(engine, DELIVERED, [ANNA], REQUEST).rows == {"main": 6}
    assert {row[0] for row in content(engine, DELIVERED)} == {"70", "-7", "", None}


def test_an_address_counts_where_no_other_id_stands_beside_it(engine: Engine) -> None:
    shared = [
        (1, 8, "anna@example.org", "of another customer", MONDAY),
        (2, None, "anna@example.org", "of no customer", MONDAY),
    ]
    fill(engine, ORDERS, shared)

    assert delete_rows(engine, ORDERS, [ANNA], REQUEST).rows == {"main": 1}
    assert content(engine, ORDERS) == [shared[0]]


def test_a_column_that_was_dropped_and_added_again_still_names_them(filled: Engine) -> None:
    loaded = filled.catalog.load(ORDERS.name)
    with loaded.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("customer_id")
    with loaded.update_schema() as schema:
        schema.add_column("customer_id", LongType())

    assert delete_rows(filled, ORDERS, [ANNA], REQUEST).rows == {"main": 2}


def test_without_a_subject_rows_go_by_their_personal_values(engine: Engine) -> None:
    contacts = replace(
        ORDERS,
        name="silver.contacts",
        subject=None,
        columns=[
            Column("mail", "string", personal=True, renamed_from=["email"]),
            Column("note", "string"),
        ],
    )
    other = (None, "anna@example.org")
    fill(engine, contacts, [("anna@example.org", "a"), (" ANNA@example.org", "b"), other])

    assert delete_rows(engine, contacts, [ANNA], REQUEST).rows == {"main": 2}
    assert content(engine, contacts) == [other]


@pytest.mark.parametrize(("column_type", "hers", "others"), NESTED)
def test_a_value_inside_of_a_personal_column_tells(
    engine: Engine, column_type: str, hers: list[Any], others: list[Any]
) -> None:
    contacts = contacts_of(column_type)
    fill(engine, contacts, [(value, "hers") for value in hers])
    fill(engine, contacts, [(value, "another's") for value in [*others, None]])
    tag(engine, contacts, "month_end")
    counts = {"main": len(hers), "month_end": len(hers)}

    assert count_rows(engine, contacts, [ANNA]) == counts
    assert delete_rows(engine, contacts, [ANNA], REQUEST).rows == counts
    assert count_rows(engine, contacts, [ANNA]) == {}
    for ref in counts:
        left = [row[1] for row in content(engine, contacts, ref)]
        assert left == ["another's"] * (len(others) + 1)


def test_a_value_inside_tells_of_rows_whose_subject_column_is_blank(engine: Engine) -> None:
    table = replace(
        ORDERS,
        columns=[
            Column("customer_id", "array<string>"),
            Column("email", "array<string>", personal=True),
        ],
    )
    anna = ["x", "anna@example.org"]
    kept = (["8"], anna)
    fill(engine, table, [kept, ([" ", None], anna), ([], anna), (None, anna), (["7"], [])])

    deleted = delete_rows(engine, table, [ANNA], REQUEST)

    assert content(engine, table) == [kept]
    assert deleted.rows == {"main": 4}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("double", 7.0, "7"),
        ("float", 7.5, "7.5"),
        ("timestamp_ntz", datetime(2024, 1, 2, 3), "2024-01-02 03:00:00"),
        ("array<double>", [None, 7.5], "7.5"),
    ],
)
def test_values_of_any_type_identify_a_person(
    engine: Engine, kind: str, value: Any, text: str
) -> None:
    table = replace(ORDERS, columns=[Column("customer_id", kind), Column("note", "string")])
    fill(engine, table, [(value, "hers"), (None, "another's")])

    deleted = delete_rows(engine, table, [Person("customer_id", frozenset({text}))], REQUEST)

    assert deleted.rows == {"main": 1}
    assert content(engine, table) == [(None, "another's")]


def test_rows_go_from_a_table_of_format_1(engine: Engine) -> None:
    table = replace(ORDERS, format_version=1)
    fill(engine, table, ROWS)
    fill(engine, table, OTHERS)
    tag(engine, table, "month_end")
    (untouched,) = data_paths(engine, table) - paths_with(engine, table, "customer_id", 7)

    deleted = delete_rows(engine, table, [ANNA], REQUEST)

    assert deleted.rows == {"main": 1, "month_end": 1}
    for ref in ("main", "month_end"):
        assert content(engine, table, ref) == sorted([*ROWS[1:], *OTHERS], key=repr)
        assert untouched in data_paths(engine, table, ref)


def test_rows_that_come_meanwhile_go_too(
    filled: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_while_another_writes(*arguments: Any) -> list[FileRows]:
        monkeypatch.setattr(delete_rows_module, "find_rows", find_rows)
        found = find_rows(*arguments)
        fill(filled, ORDERS, [(9, 7, None, "late", TUESDAY)])
        return found

    monkeypatch.setattr(delete_rows_module, "find_rows", find_while_another_writes)

    assert delete_rows(filled, ORDERS, [ANNA], REQUEST).rows == {"main": 3}
    assert count_rows(filled, ORDERS, [ANNA]) == {}


def test_what_main_was_computed_from_is_said_again(engine: Engine) -> None:
    fill(engine, ORDERS, ROWS, inputs={"bronze.orders": 17})

    delete_rows(engine, ORDERS, [ANNA], REQUEST)

    assert read_history(engine, ORDERS.name).watermark("bronze.orders") == 17


def test_no_commit_says_who_it_was(filled: Engine) -> None:
    partitioned = replace(ORDERS, name="silver.by_note", partitioning=["note"])
    fill(filled, partitioned, [(1, 7, "anna@example.org", "anna", MONDAY)])

    for table in (ORDERS, partitioned):
        delete_rows(filled, table, [ANNA], REQUEST)
        main = read_history(filled, table.name).main
        assert "anna" not in repr(main.summary)


def changed_before(engine: Engine) -> tuple[str, str]:
    """Delete hers by merge-on-read in a file of her own and a shared one; return both paths."""
    fill(engine, ORDERS, [MORE[0]])
    [alone] = data_paths(engine, ORDERS)
    fill(engine, ORDERS, ROWS[:2])
    [shared] = paths_with(engine, ORDERS, "id", 1)
    fill(engine, ORDERS, OTHERS)
    delete_first_rows(engine.catalog.load(ORDERS.name), alone, shared)
    return alone, shared


@pytest.mark.long
@pytest.mark.parametrize("is_seen_too", [False, True])
def test_rows_under_delete_files_leave_branches_and_tags(
    engine: Engine, *, is_seen_too: bool
) -> None:
    hidden_in = set(changed_before(engine))
    if is_seen_too:
        fill(engine, ORDERS, [(1, 7, "anna@example.org", "changed", MONDAY)])
    tag(engine, ORDERS, "month_end")
    branch_off(engine, ORDERS, "experiment")
    untouched = data_paths(engine, ORDERS) - hidden_in
    before = content(engine, ORDERS, "month_end")
    rows = {"experiment": 2 + is_seen_too, "month_end": 2 + is_seen_too}
    rows |= {"main": 1} if is_seen_too else {}
    assert count_rows(engine, ORDERS, [ANNA]) == rows

    deleted = delete_rows(engine, ORDERS, [ANNA], REQUEST)

    assert deleted.rows == rows
    assert set(deleted.moved_tags) == {"month_end"}
    assert deleted.skipped == {}
    for ref in ("month_end", "experiment"):
        assert hidden_in.isdisjoint(data_paths(engine, ORDERS, ref))
        assert is_seen_too or untouched < data_paths(engine, ORDERS, ref)
        assert content(engine, ORDERS, ref) == [row for row in before if row[1] != 7]
        loaded = engine.catalog.load(ORDERS.name)
        assert live_delete_files(loaded, loaded.metadata.refs[ref].snapshot_id) == []
    assert hidden_in <= data_paths(engine, ORDERS)
    assert delete_rows(engine, ORDERS, [ANNA], REQUEST).rows == {}
