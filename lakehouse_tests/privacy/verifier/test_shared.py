"""A value that people who remain explain is shared, and no residue."""

import pytest

from lakehouse.tables.person import Person
from lakehouse_tests.privacy.verifier.someone import EMAIL, PERSON, searched, written

pytestmark = pytest.mark.unit


def test_a_value_of_another_person_is_shared(tmp_path):
    written(tmp_path, "notes.txt", EMAIL)

    report = searched(tmp_path, remaining=[EMAIL.upper()])

    assert report.findings == ()
    assert [(item.file, item.kind) for item in report.shared] == [
        ("notes.txt", "personal value")
    ]


def test_a_value_within_a_value_of_another_person_is_shared_only_there(tmp_path):
    person = Person("customer_id", frozenset(), {"name": frozenset({"Ann Lee"})})
    written(tmp_path, "hers.txt", "Joann Leeds")
    written(tmp_path, "his.txt", "Ann Lee")

    report = searched(tmp_path, person=person, remaining=["Joann Leeds"])

    assert [item.file for item in report.shared] == ["hers.txt"]
    assert [item.file for item in report.findings] == ["his.txt"]


def test_a_short_value_in_a_column_can_be_shared(tmp_path):
    written(tmp_path, "inbox/raw/a.csv", "nickname\nMia\n")

    assert searched(tmp_path).findings
    assert not searched(tmp_path, remaining=["mia"]).findings


def test_a_value_within_very_many_values_is_shared_only_in_bytes(tmp_path):
    person = Person("customer_id", frozenset(), {"nickname": frozenset({"Malaysia"})})
    written(tmp_path, "notes.txt", "Malaysia")
    written(tmp_path, "inbox/raw/a.csv", "nickname\nMalaysia\n")
    remaining = (f"{number} Road, Malaysia" for number in range(2000))

    report = searched(tmp_path, person=person, remaining=remaining)

    assert [item.how for item in report.findings] == ["column"]
    assert {item.file for item in report.shared} == {"notes.txt", "inbox/raw/a.csv"}


def test_an_empty_value_identifies_no_one(tmp_path):
    person = Person("customer_id", frozenset({" "}), {"nickname": frozenset({""})})
    written(tmp_path, "inbox/raw/a.csv", "client,nickname\n,\n")

    assert searched(tmp_path, person=person).findings == ()


def test_an_id_is_never_shared(tmp_path):
    written(tmp_path, "inbox/raw/a.csv", "customer_id\n4711\n")

    assert searched(tmp_path, remaining=["4711"]).findings


def test_a_report_contains_no_value(tmp_path):
    values = [EMAIL, *PERSON.ids, "Mia"]
    written(
        tmp_path,
        f"inbox/raw/{EMAIL.replace('/', '_')}.csv",
        f"client,nickname,{EMAIL}\n4711,Mia,{EMAIL}\n",
    )
    written(
        tmp_path,
        "warehouse/bronze/raw/60123456789/client=4711/a.json",
        f'{{"{EMAIL}": {{"client": 4711}}}}',
    )

    report = searched(tmp_path)

    text = f"{report.as_text()}{report.as_json()}"
    assert report.findings
    assert [value for value in values if value.lower() in text.lower()] == []
