"""All rows of a person, and none of anybody else."""

import pytest

from lakehouse.privacy.export import Export, export_people
from lakehouse.privacy.identity import Named, find_people
from lakehouse_tests.privacy.conftest import TABLES, People, declared

pytestmark = pytest.mark.unit


def export(people: People, column: str, value: str) -> Export:
    identities = find_people(people.engine, people.subjects, [Named(column, value)])
    return export_people(people.engine, people.subjects, identities, TABLES)


def amounts(exported: Export, table: str) -> list[object]:
    return sorted(held.row["amount"] for held in exported.rows if held.table == table)


def test_each_row_of_a_person_is_told_with_its_table(people: People) -> None:
    exported = export(people, "customer_id", "7")
    # What an old snapshot alone has is not a row any more; that without an id is told by its
    # address.
    assert amounts(exported, "silver.orders") == [2.0]
    assert amounts(exported, "bronze.raw_orders") == ["1", "2", "lost"]
    assert {held.table for held in exported.rows} == {
        "bronze.raw_orders",
        "silver.orders",
        "gold.profiles",
        "gold.mails",
    }


def test_tables_that_were_looked_at_are_told(people: People) -> None:
    assert export(people, "customer_id", "7").tables == (
        "bronze.raw_orders",
        "gold.mails",
        "gold.profiles",
        "silver.orders",
    )


def test_a_row_that_only_a_shared_value_tells_is_left_out_and_counted(people: People) -> None:
    exported = export(people, "customer_id", "8")
    assert "gold.mails" not in {held.table for held in exported.rows}
    assert exported.shared_rows == 1
    assert amounts(exported, "silver.orders") == [3.0]


def test_who_is_unknown_has_no_row(people: People) -> None:
    assert export(people, "customer_id", "70").rows == ()


def test_a_table_that_nobody_declared_is_told_as_unsearched(people: People) -> None:
    people.add(declared("t.copy", "customer_id", "note"), ("7", "seven"))
    assert export(people, "customer_id", "7").unsearched == {"t.copy": ("customer_id",)}
