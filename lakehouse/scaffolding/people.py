"""Which columns look as if they tell of people: by their names, and by what stands in them."""

from collections.abc import Iterable

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.scaffolding.words import words_of

_PERSONAL = frozenset(
    {"email", "mail", "phone", "mobile", "telephone", "fax", "address", "street", "iban", "bic"}
    | {"ssn", "passport", "birthday", "birthdate", "dob", "firstname", "lastname", "surname"}
    | {"forename", "fullname", "nickname", "vorname", "nachname", "strasse", "adresse"}
    | {"telefon", "geburtsdatum"}
)
_PERSONAL_PAIRS = frozenset(
    {
        ("first", "name"),
        ("last", "name"),
        ("full", "name"),
        ("given", "name"),
        ("family", "name"),
    }
    | {
        ("middle", "name"),
        ("date", "birth"),
        ("birth", "date"),
        ("e", "mail"),
        ("user", "name"),
    }
)
_PERSONS = frozenset(
    {"customer", "client", "user", "person", "member", "patient", "employee", "contact"}
    | {"guest", "buyer", "passenger", "student", "account", "subscriber", "recipient"}
    | {"owner", "tenant", "kunde", "mitarbeiter"}
)
_ALIASES = {"cust": "customer", "customers": "customer", "users": "user"}


def why_personal(column: ColumnProfile) -> str:
    """Say why a column may identify people directly; empty where nothing tells that it does."""
    words = words_of(column.name)
    if column.looks_like("email"):
        return "e-mail addresses"
    if column.looks_like("phone"):
        return "looks like phone numbers"
    if not _PERSONAL.isdisjoint(words) or _has_pair(words):
        return "named as what identifies a person"
    if column.looks["email"] or column.looks["phone"]:
        return "e-mail addresses or phone numbers among its values"
    of_person = not _PERSONS.isdisjoint(_whole(words))
    if of_person and ("name" in words or column.looks_like("full_name")):
        return "looks like names of people"
    return ""


def stands_for_person(column: ColumnProfile) -> bool:
    """Whether a column is named as the key of a person is, such as `customer_id`."""
    words = _whole(words_of(column.name))
    return is_key_name(column.name) and not _PERSONS.isdisjoint(words)


def _whole(words: Iterable[str]) -> set[str]:
    return {_ALIASES.get(word, word) for word in words}


def _has_pair(words: tuple[str, ...]) -> bool:
    return any(pair[0] in words and pair[1] in words for pair in _PERSONAL_PAIRS)
