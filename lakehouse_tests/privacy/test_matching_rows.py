"""Rows are found by one column, in whatever way a file has it."""

from functools import partial

import pytest
from pyiceberg.types import StringType

from lakehouse.privacy.matching_rows import matching_rows
from lakehouse.privacy.table_reading import are_among
from lakehouse_tests.privacy.small_lakehouse import ORDERS, People

pytestmark = pytest.mark.unit

SEVEN = partial(are_among, keys={"seven@example.org", "seven@old.example"})


def _found(
    people: People, *names: str, column: str = "email", all_snapshots: bool = False
) -> list[tuple[object, ...]]:
    loaded = people.engine.catalog.load(ORDERS.name)
    found = matching_rows(loaded, names, column, SEVEN, all_snapshots=all_snapshots)
    return [tuple(row.values()) for _, rows in found for row in rows.to_pylist()]


def test_only_rows_that_match_are_read(people: People) -> None:
    assert _found(people, "email", "customer_id") == [("Seven@example.org", 7)]


def test_a_row_that_was_deleted_is_in_some_snapshot(people: People) -> None:
    found = _found(people, "customer_id", "email", all_snapshots=True)

    assert sorted(found) == [(7, "Seven@example.org"), (7, "seven@old.example")]


def test_files_are_read_by_what_they_call_the_column(people: People) -> None:
    loaded = people.engine.catalog.load(ORDERS.name)
    with loaded.update_schema() as update:
        update.rename_column("email", "address")

    assert _found(people, "customer_id", "address", column="address") == [
        (7, "Seven@example.org")
    ]


def test_files_that_lack_a_column_have_nothing_in_it(people: People) -> None:
    loaded = people.engine.catalog.load(ORDERS.name)
    with loaded.update_schema() as update:
        update.add_column("second_email", StringType())

    assert _found(people, "customer_id", "email", "second_email") == [
        (7, "Seven@example.org", None)
    ]
    assert _found(people, "second_email", column="second_email") == []


def test_no_other_file_is_read_than_those_that_are_named(people: People) -> None:
    loaded = people.engine.catalog.load(ORDERS.name)

    assert not list(
        matching_rows(loaded, ("email",), "email", SEVEN, all_snapshots=True, files=())
    )
