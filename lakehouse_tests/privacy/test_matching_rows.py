"""Rows are found by one column, in whatever way a file has it."""

from collections.abc import Sequence
from functools import partial

import pytest
from pyiceberg.types import StringType

from lakehouse.privacy.compared_values import may_be_values
from lakehouse.privacy.matching_rows import matching_rows
from lakehouse_tests.privacy.small_lakehouse import FRUITS, ORDERS, People

pytestmark = pytest.mark.unit

SEVEN = partial(may_be_values, keys={"seven@example.org", "seven@old.example"})


def _found(
    people: People, *columns: str, beside: Sequence[str] = (), all_snapshots: bool = False
) -> list[tuple[object, ...]]:
    loaded = people.engine.catalog.load(ORDERS.name)
    found = matching_rows(loaded, columns, SEVEN, beside=beside, all_snapshots=all_snapshots)
    return [tuple(row.values()) for _, rows in found for row in rows.to_pylist()]


def test_only_rows_that_match_are_read(people: People) -> None:
    assert _found(people, "email", beside=["customer_id"]) == [("Seven@example.org", 7)]


def test_a_row_that_was_deleted_is_in_some_snapshot(people: People) -> None:
    found = _found(people, "email", beside=["customer_id"], all_snapshots=True)

    assert sorted(found) == [("Seven@example.org", 7), ("seven@old.example", 7)]


def test_files_are_read_by_what_they_call_the_column(people: People) -> None:
    loaded = people.engine.catalog.load(ORDERS.name)
    with loaded.update_schema() as update:
        update.rename_column("email", "address")

    assert _found(people, "address", beside=["customer_id"]) == [("Seven@example.org", 7)]


def test_files_that_lack_a_column_have_nothing_in_it(people: People) -> None:
    loaded = people.engine.catalog.load(ORDERS.name)
    with loaded.update_schema() as update:
        update.add_column("second_email", StringType())

    assert _found(people, "email", "second_email") == [("Seven@example.org", None)]
    assert _found(people, "second_email") == []


def test_each_of_several_columns_tells_a_row(people: People) -> None:
    seven, other = "seven@old.example", "nine@example.org"
    people.add(FRUITS, (seven, other), (other, seven), (other, other), (None, None))
    loaded = people.engine.catalog.load(FRUITS.name)

    found = matching_rows(loaded, ["customer_id", "email"], SEVEN, all_snapshots=False)

    told = [tuple(row.values()) for _, rows in found for row in rows.to_pylist()]
    assert (seven, other) in told
    assert (other, seven) in told
    assert (other, other) not in told


def test_files_that_are_known_to_have_none_are_not_read(people: People) -> None:
    people.add(ORDERS, (9, "nine@example.org", 1.0))
    loaded = people.engine.catalog.load(ORDERS.name)
    found = list(matching_rows(loaded, ["email"], SEVEN, all_snapshots=True))
    without = {path for path, rows in found if not rows.num_rows}

    again = matching_rows(loaded, ["email"], SEVEN, all_snapshots=True, without=without)

    assert without
    assert list(again) == [(path, rows) for path, rows in found if rows.num_rows]
