"""A generated person must be found, otherwise the proof is void."""

import pytest

from lakehouse.privacy.verifier import formats
from lakehouse.privacy.verifier.file_part import FilePart
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import by_values, run_control, verify
from lakehouse_tests.privacy.verifier.someone import COLUMNS, PERSON, written

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("method", ["values", "hmacs"])
def test_the_generated_person_is_found(method):
    result = run_control(method)

    assert result.missed == ()
    assert result.found == ("control.parquet", "control.json.gz")


def test_a_home_without_the_person_is_proved(tmp_path):
    written(tmp_path, "inbox/raw/a.csv", "client\n1\n")

    assert verify([FolderRoot(tmp_path)], by_values([PERSON], COLUMNS)).is_proof


def test_a_search_that_finds_nothing_voids_the_proof(tmp_path, monkeypatch):
    written(tmp_path, "inbox/raw/a.csv", "client\n1\n")
    monkeypatch.setattr(FilePart, "add_finding", lambda *_, **__: None)

    report = verify([FolderRoot(tmp_path)], by_values([PERSON], COLUMNS))

    assert report.control.missed and not report.is_proof


def test_a_format_that_is_not_decoded_is_missed(monkeypatch):
    monkeypatch.delitem(formats._READERS, "parquet")

    assert run_control("values").missed == ("control.parquet",)


def test_field_ids_that_are_ignored_are_missed(monkeypatch):
    monkeypatch.setattr(FilePart, "column_name", lambda _, name, __: name)

    assert run_control("hmacs").missed == ("control.parquet",)
