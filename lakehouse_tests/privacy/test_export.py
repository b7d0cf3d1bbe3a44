"""All rows of a person, and none of anybody else."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from lakehouse.privacy.holders import find_subjects
from lakehouse.privacy.identity import Named, find_people
from lakehouse.privacy.personal_export import Export, export_people
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.privacy.small_lakehouse import TABLES, People, declared

pytestmark = pytest.mark.unit


def export(
    people: People, column: str, value: str, tables: Mapping[str, IcebergTable] = TABLES
) -> Export:
    identities = find_people(people.engine, people.subjects, [Named(column, value)])
    return export_people(people.engine, people.subjects, identities, tables)


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


def test_a_row_that_only_a_shared_value_tells_is_left_out_and_counted(people: People) -> None:
    exported = export(people, "customer_id", "8")
    assert "gold.mails" not in {held.table for held in exported.rows}
    assert exported.shared_rows == 1
    assert amounts(exported, "silver.orders") == [3.0]


def test_of_people_named_by_id_and_by_value_each_row_is_told(people: People) -> None:
    named = [Named("customer_id", "7"), Named("email", "alone@example.org")]
    identities = find_people(people.engine, people.subjects, named)

    exported = export_people(people.engine, people.subjects, identities, TABLES)

    mails = [held.row["sent"] for held in exported.rows if held.table == "gold.mails"]
    assert sorted(mails) == [1, 3]


@pytest.mark.long
def test_a_table_that_nobody_declared_is_told_as_unsearched(people: People) -> None:
    people.add(declared("t.copy", "customer_id", "note"), ("7", "seven"))
    assert export(people, "customer_id", "7").unsearched == {"t.copy": ("customer_id",)}


def test_values_of_any_type_are_told_and_searched(people: People) -> None:
    column = [
        Column("customer_id", "bigint"),
        Column("born", "date", personal=True),
        Column("seen", "timestamp", personal=True),
    ]
    members = declared("s.members", *column, subject="customer_id")
    known = replace(people, subjects=find_subjects({members.name: members}, {}))
    seen = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    known.add(members, (7, date(1990, 1, 2), seen), (None, date(1990, 1, 2), None))
    known.add(members, (8, date(1991, 1, 2), None))

    (identity,) = find_people(known.engine, known.subjects, [Named("customer_id", "07")])
    assert identity.person.personal["born"] == {"1990-01-02"}
    exported = export_people(known.engine, known.subjects, [identity], {members.name: members})
    assert [held.row["customer_id"] for held in exported.rows] == [7, None]


def test_who_stands_in_arrays_alone_is_found_in_each(people: People) -> None:
    contacts = declared(
        "s.contacts",
        Column("phones", "array<string>", personal=True),
        "note",
        no_subject="By number alone.",
    )
    known = replace(people, subjects=find_subjects({contacts.name: contacts}, {}))
    known.add(contacts, (["1234567", "070"], "hers"), (["12"], "another's"), (None, "x"))

    exported = export(known, "phones", "1234567", {contacts.name: contacts})
    assert [held.row["note"] for held in exported.rows] == ["hers"]
