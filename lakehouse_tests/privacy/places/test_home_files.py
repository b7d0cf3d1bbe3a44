"""Whatever else lies in a home is treated by what it is, or said not to have been looked
through.
"""

import gzip
import json
import pickle
from pathlib import Path

import pytest

from lakehouse.privacy.places import home_files
from lakehouse.privacy.places.scrub import scrub_places
from lakehouse.settings import Settings
from lakehouse_tests.privacy.places.a_person import EMAIL, NEIGHBOUR, PERSON, traces

pytestmark = pytest.mark.unit

BINARY = bytes(range(256)) * 4


def put(settings: Settings, name: str, content: bytes) -> Path:
    file = settings.home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def scrub(settings: Settings, *shared: str) -> list[tuple[str, str]]:
    places = scrub_places(settings, [PERSON], shared)
    return [
        (place.place, place.outcome)
        for place in places
        if not place.place.startswith("values that are not")
    ]


@pytest.mark.parametrize(
    "name",
    ["logs/spark.log", "logs/spark.log.1", "notes.txt", "exports/a.csv", ".nux/nux.yaml"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_text_is_overwritten(settings, name, encoding):
    file = put(settings, name, f"to {EMAIL} and {NEIGHBOUR}".encode(encoding))

    assert scrub(settings) == [(name, "erased")]
    assert traces(settings.home) == []
    assert NEIGHBOUR in file.read_bytes().decode(encoding)


def test_compressed_text_stays_compressed(settings):
    file = put(settings, "logs/old.gz", gzip.compress(f"to {EMAIL}".encode()))

    assert scrub(settings) == [("logs/old.gz", "erased")]
    assert gzip.decompress(file.read_bytes()) == b"to [erased]"


def test_pickled_objects_can_be_loaded(settings):
    file = put(settings, "dagster/storage/x/result", pickle.dumps({"to": EMAIL, "n": [1, 2]}))

    assert scrub(settings) == [("dagster/storage/x/result", "erased")]
    loaded = pickle.loads(file.read_bytes())
    assert loaded["to"].startswith("[erased]")
    assert loaded["n"] == [1, 2]


@pytest.mark.parametrize("has_value", [True, False])
def test_what_cannot_be_read_is_said_whatever_is_in_it(settings, has_value):
    put(settings, "metastore_db/seg0/c10.dat", BINARY + EMAIL.encode() * has_value)

    assert scrub(settings) == [("metastore_db/seg0/c10.dat", "not reached")]


def test_what_is_compressed_and_no_text_is_said(settings):
    put(settings, "a.gz", gzip.compress(BINARY))

    assert scrub(settings) == [("a.gz", "not reached")]


def test_a_damaged_gzip_is_said(settings):
    put(settings, "a.gz", gzip.compress(b"hello" * 99)[:-9])

    assert scrub(settings) == [("a.gz", "not reached")]


def test_settings_are_the_operators_to_change(settings):
    file = put(settings, "alerts.toml", f'[[route]]\nto = ["mailto://{EMAIL}"]\n'.encode())
    content = file.read_bytes()

    assert scrub(settings) == [("alerts.toml", "not reached")]
    assert file.read_bytes() == content


def test_a_name_with_a_value_is_said_and_not_shown(settings):
    put(settings, f"exports/{EMAIL}.txt", b"hello")

    assert scrub(settings) == [("exports/[erased].txt", "not reached")]


def test_a_link_to_itself_holds_nothing(settings):
    settings.make_home()
    (settings.home / "loop").symlink_to("loop")

    assert scrub(settings) == []


def test_a_link_to_elsewhere_is_said_and_not_followed(settings, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text(EMAIL, encoding="utf-8")
    settings.make_home()
    (settings.home / "link").symlink_to(outside)

    assert scrub(settings) == [("link", "not reached")]
    assert outside.read_text(encoding="utf-8") == EMAIL


def test_half_a_file_of_a_killed_process_is_overwritten(settings):
    put(settings, "alerts/.state.json-a1b2c3d4", f'{{"open": "{EMAIL}'.encode())

    assert scrub(settings) == [("alerts/.state.json-a1b2c3d4", "erased")]
    assert traces(settings.home) == []


def test_text_that_goes_on_as_something_else_is_said(settings):
    put(settings, "installer.sh", b"#!/bin/sh\n" * 20000 + BINARY * 200)

    assert scrub(settings) == [("installer.sh", "not reached")]


def test_a_log_with_a_gap_is_a_log(settings):
    put(settings, "logs/spark.log", b"WARN\n" + b"\0" * 100 + EMAIL.encode())

    assert scrub(settings) == [("logs/spark.log", "erased")]


def test_a_folder_of_deliveries_may_be_a_link(settings, tmp_path):
    settings.make_home()
    (settings.home / "inbox").symlink_to(tmp_path)

    assert scrub(settings) == []


@pytest.mark.parametrize("folder", ["warehouse", "inbox", "archive", "rejected", "privacy"])
def test_what_other_parts_erase_is_left_to_them(settings, folder):
    file = put(settings, f"{folder}/a.txt", EMAIL.encode())

    assert scrub(settings) == []
    assert file.read_text(encoding="utf-8") == EMAIL


def test_such_a_folder_further_down_is_no_other_parts(settings):
    put(settings, "exports/archive/a.txt", EMAIL.encode())

    assert scrub(settings) == [("exports/archive/a.txt", "erased")]


def test_what_others_have_too_is_kept_and_said(settings):
    put(settings, "a.txt", EMAIL.encode())

    assert scrub(settings, EMAIL) == [("a.txt", "kept")]


def test_a_home_that_is_not_there_has_nothing(settings):
    assert scrub(settings) == []
    assert not settings.home.exists()


def test_what_is_closed_to_this_user_is_said(settings, monkeypatch):
    put(settings, "a.txt", EMAIL.encode())

    def closed(*_):
        raise PermissionError

    # Root, as whom tests may run, is let in everywhere.
    monkeypatch.setattr(home_files, "_kind_of_content", closed)

    assert scrub(settings) == [("a.txt", "not reached")]


def test_a_damaged_database_is_said(settings):
    put(settings, "own.db", b"SQLite format 3\0" + BINARY)

    assert scrub(settings) == [("own.db", "not reached")]


def test_a_note_of_a_process_stays_json(settings):
    note = put(settings, "spark-server.json", json.dumps({"port": 7, "token": EMAIL}).encode())

    assert scrub(settings) == [("spark-server.json", "erased")]
    assert json.loads(note.read_text())["port"] == 7
