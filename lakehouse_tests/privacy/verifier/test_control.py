"""A generated person is found in a file of each format, or the proof is void."""

import pytest

from lakehouse.privacy.verifier import formats
from lakehouse.privacy.verifier.file_part import FilePart
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.verify import run_control, verify
from lakehouse_tests.privacy.verifier.someone import COLUMNS, PERSON, written

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("method", ["values", "hmacs"])
def test_the_generated_person_is_found_in_each_format(method):
    result = run_control(method)

    assert result.missed == ()
    assert len(result.found) == 7


def test_a_home_without_the_person_is_proved(tmp_path):
    written(tmp_path, "inbox/raw/a.csv", "client\n1\n")

    report = verify([FolderRoot(tmp_path)], [PERSON], COLUMNS)

    assert report.is_proof
    assert report.as_text().startswith("Proved: ")


def test_a_search_that_finds_nothing_voids_the_proof(tmp_path, monkeypatch):
    written(tmp_path, "inbox/raw/a.csv", "client\n1\n")
    monkeypatch.setattr(FilePart, "found", lambda *_, **__: None)

    report = verify([FolderRoot(tmp_path)], [PERSON], COLUMNS)

    assert (report.is_void, report.is_proof) == (True, False)
    assert report.as_text().startswith("Void: ")


@pytest.mark.parametrize("kind", ["parquet", "avro", "orc", "sqlite", "csv", "json"])
def test_a_format_that_is_not_decoded_is_missed(monkeypatch, kind):
    monkeypatch.delitem(formats._READERS, kind)

    assert {name.partition(".")[0] for name in run_control("values").missed} == {kind}


def test_field_ids_that_are_ignored_are_missed(monkeypatch):
    monkeypatch.setattr(FilePart, "column_name", lambda _, name, __: name)

    assert run_control("hmacs").missed == ("parquet.parquet", "avro.avro")
