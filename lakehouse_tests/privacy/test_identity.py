"""From an id or an address to all that stands for a person, and to nobody else."""

import pytest

from lakehouse.errors import UsageError
from lakehouse.privacy.identity import Identity, Named, find_people
from lakehouse.privacy.table_values import shared_values
from lakehouse_tests.privacy.small_lakehouse import People

pytestmark = pytest.mark.unit


def find(people: People, *named: tuple[str, str]) -> list[Identity]:
    return find_people(
        people.engine, people.subjects, [Named(column, value) for column, value in named]
    )


def shared(people: People, identity: Identity) -> frozenset[str]:
    return shared_values(people.engine, people.subjects, [identity.person])


def only(people: People, *named: tuple[str, str]) -> Identity:
    (identity,) = find(people, *named)
    return identity


def test_an_id_leads_to_its_forms_and_to_former_addresses(people: People) -> None:
    person = only(people, ("customer_id", "007")).person
    assert person.subject == "customer_id"
    assert person.ids == {"7", " +007 "}
    values = {"seven@old.example", " Seven@example.org", "Seven@example.org"}
    assert person.personal == {"email": values, "customer_email": values}


@pytest.mark.long
@pytest.mark.parametrize(
    "named",
    [
        ("email", "seven@EXAMPLE.org "),
        ("customer_email", "seven@example.org"),
        ("client", "7"),
        # Who has it no longer.
        ("email", "seven@old.example"),
    ],
)
def test_whatever_a_person_is_named_by_they_are_the_same(
    people: People, named: tuple[str, str]
) -> None:
    assert only(people, named) == only(people, ("customer_id", "7"))


@pytest.mark.long
def test_an_address_of_several_people_is_rejected_until_each_is_named(people: People) -> None:
    shared = ("email", "shared@example.org")
    for named in ([shared], [shared, ("customer_id", "8")]):
        with pytest.raises(
            UsageError, match=r"^2 values of customer_id have the given email"
        ) as raised:
            find(people, *named)
        assert "shared@" not in str(raised.value)

    both = find(people, shared, ("customer_id", "8"), ("customer_id", "9"))
    assert [one.normal_id for one in both] == ["8", "9"]


def test_an_address_that_another_person_has_is_shared(people: People) -> None:
    identity = only(people, ("customer_id", "8"))
    assert identity.person.ids == {"8"}
    assert shared(people, identity) == {"shared@example.org"}
    assert shared(people, only(people, ("customer_id", "7"))) == frozenset()


def test_an_address_that_only_a_table_without_a_subject_has_is_a_person(
    people: People,
) -> None:
    person = only(people, ("email", "Alone@example.org")).person
    assert person.subject == "email"
    assert "alone@example.org" in person.ids
    assert person.personal["email"] == {"alone@example.org"}


@pytest.mark.parametrize(
    "named", [("customer_id", "70"), ("customer_id", "x"), ("email", "no@body")]
)
def test_who_is_in_no_table_is_told_as_unknown(people: People, named: tuple[str, str]) -> None:
    identity = only(people, named)
    assert not identity.is_known
    assert identity.person.personal == {}


def test_a_column_that_stands_for_nobody_is_named(people: People) -> None:
    with pytest.raises(UsageError, match=r"^amount is neither a subject nor a personal column"):
        find(people, ("amount", "1"))


def test_nothing_is_told_of_a_value_by_its_repr(people: People) -> None:
    named = Named("customer_id", "1234567")
    assert "1234567" not in repr(named)
    assert "1234567" not in repr(find_people(people.engine, people.subjects, [named]))
