"""Which tables hold a person, and by which columns, told from declarations alone."""

import pytest

from lakehouse.privacy.holders import Subject, find_subjects
from lakehouse_tests.privacy.small_lakehouse import SOURCES, TABLES, declared, personal

pytestmark = pytest.mark.unit


def found(subject: Subject) -> dict[str, tuple[list[str], list[str], str | None]]:
    """Return, by table, the names of ids and personal columns, and of the one that tells whose a
    row is.
    """
    return {
        holder.table: (
            [column.name for column in holder.ids],
            [column.name for column in holder.personal],
            holder.row_column.name if holder.row_column else None,
        )
        for holder in subject.holders
    }


def test_columns_are_followed_from_table_to_table_by_their_names() -> None:
    (customers,) = find_subjects(TABLES, SOURCES)
    assert customers.name == "customer_id"
    assert customers.names == {"customer_id", "client"}
    assert customers.personal == (frozenset({"customer_email", "email"}),)
    assert found(customers) == {
        "bronze.raw_orders": (["customer_id"], ["customer_email"], "customer_id"),
        "silver.orders": (["customer_id"], ["email"], "customer_id"),
        "gold.profiles": (["client"], [], "client"),
        "gold.mails": ([], ["email"], None),
    }


def test_two_kinds_of_people_are_two_subjects() -> None:
    people = declared("s.people", "person_id", personal("email"), subject="person_id")
    firms = declared("s.firms", "firm_id", personal("email"), subject="firm_id")
    both = declared("s.both", "person_id", "firm_id", "email", subject="firm_id")
    tables = {one.name: one for one in (people, firms, both)}
    sources = {both.name: {people.name, firms.name}}
    by_firm, by_person = find_subjects(tables, sources)
    assert found(by_firm) == {
        "s.firms": (["firm_id"], ["email"], "firm_id"),
        "s.both": (["firm_id"], ["email"], "firm_id"),
    }
    # The row is a firm's; only values in it are the person's.
    assert found(by_person) == {
        "s.people": (["person_id"], ["email"], "person_id"),
        "s.both": (["person_id"], ["email"], None),
    }


def test_one_name_of_a_subject_is_one_kind_of_person() -> None:
    one = declared("s.one", "user", subject="user")
    two = declared("s.two", "USER", subject="USER")
    (users,) = find_subjects({one.name: one, two.name: two}, {})
    assert {holder.table for holder in users.holders} == {"s.one", "s.two"}


def test_an_address_that_a_newsletter_knows_its_readers_by_is_one_of_a_customers() -> None:
    readers = declared("s.readers", "email", subject="email")
    customers = declared("s.customers", "id", personal("email"), subject="id")
    tables = {one.name: one for one in (readers, customers)}
    by_email, by_id = find_subjects(tables, {})
    assert found(by_email) == {"s.readers": (["email"], [], "email")}
    assert found(by_id)["s.readers"] == ([], ["email"], "email")


def test_personal_columns_of_no_subject_are_one_of_their_own() -> None:
    letters = declared("s.letters", personal("address"), no_subject="No ids.")
    (subject,) = find_subjects({letters.name: letters}, {})
    assert (subject.name, found(subject)) == (
        "address",
        {"s.letters": (["address"], ["address"], None)},
    )
