"""A planted person is found in each class of place, or the proof is void."""

import pytest

from lakehouse.privacy.verifier import inspection, places
from lakehouse.privacy.verifier.control.plants import PLANTS
from lakehouse.privacy.verifier.control.run_control import run_control, run_hmac_control
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search_state import FilePart
from lakehouse.privacy.verifier.verify import verify
from lakehouse.storage.rejected_files import REASON_ENDING
from lakehouse_tests.privacy.verifier.someone import COLUMNS, PERSON, written

pytestmark = pytest.mark.unit

ALL = sorted(PLANTS)


def test_there_is_a_control_for_each_class_of_place():
    named = [text for name, text in vars(places).items() if name.isupper()]
    texts = {text for text in named if isinstance(text, str)}

    assert texts - {REASON_ENDING} == set(PLANTS)


@pytest.mark.parametrize("place", ALL)
def test_the_planted_person_is_found(tmp_path, place):
    result = run_control([place], tmp_path)

    assert (result.found, result.missed) == ((place,), ())
    assert list(tmp_path.iterdir()) == []


def test_the_planted_person_is_found_by_hmac(tmp_path):
    result = run_hmac_control(tmp_path)

    assert result.found
    assert result.missed == ()


def test_a_home_without_the_person_is_proved(tmp_path):
    written(tmp_path, "inbox/raw/a.csv", "client\n1\n")

    report = verify([FolderRoot(tmp_path)], [PERSON], COLUMNS)

    assert report.is_proof
    assert report.control.found == ("delivered file",)
    assert report.as_text().startswith("Proved: ")


def test_a_verifier_that_finds_nothing_voids_the_proof(tmp_path, monkeypatch):
    written(tmp_path, "inbox/raw/a.csv", "client\n1\n")
    monkeypatch.setattr(FilePart, "found", lambda *_, **__: None)

    report = verify([FolderRoot(tmp_path)], [PERSON], COLUMNS)

    assert report.is_void
    assert not report.is_proof
    assert report.as_text().startswith("Void: ")


def test_a_verifier_that_cannot_unpack_misses_what_is_packed(tmp_path, monkeypatch):
    monkeypatch.setattr(inspection, "_decode", lambda *_: None)

    result = run_control([places.DATA_FILE, places.TEMPORARY, places.SPARK_LOG], tmp_path)

    assert result.found == (places.SPARK_LOG,)
    assert "data file: warehouse/control/data/small.parquet" in result.missed
