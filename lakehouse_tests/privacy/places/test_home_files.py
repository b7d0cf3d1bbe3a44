"""Whatever else lies in a home is treated by what it is, or said not to have been looked
through.
"""

import gzip
import json
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lakehouse.privacy.places import mask_files as scrubbing
from lakehouse.privacy.places.mask_files import scrub_places
from lakehouse.settings import Settings
from lakehouse_tests.privacy.places.a_person import EMAIL, NEIGHBOUR, PASSPORT, PERSON, traces

pytestmark = pytest.mark.unit

BINARY = bytes(range(256)) * 4


def put(settings: Settings, name: str, content: bytes) -> Path:
    file = settings.home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def scrub(settings: Settings, *shared: str) -> list[tuple[str, str]]:
    places = scrub_places(settings, [PERSON], shared)
    return [(place.place, place.outcome) for place in places]


@pytest.mark.parametrize(
    "name",
    ["logs/spark.log", "logs/spark.log.1", "notes.txt", "exports/a.csv", ".nux/nux.yaml"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_text_is_overwritten(settings, name, encoding):
    file = put(settings, name, f"to {EMAIL} and {NEIGHBOUR}".encode(encoding))

    assert scrub(settings) == [(name, "erased")]
    assert traces(settings.home) == []
    assert NEIGHBOUR in file.read_bytes().decode(encoding)


def test_pickled_objects_can_be_loaded(settings):
    file = put(settings, "dagster/storage/x/result", pickle.dumps({"to": EMAIL, "n": [1, 2]}))

    assert scrub(settings) == [("dagster/storage/x/result", "erased")]
    loaded = pickle.loads(file.read_bytes())
    assert loaded["to"].startswith("[erased]")
    assert loaded["n"] == [1, 2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("a.gz", gzip.compress(b"hello" * 99)[:-9], id="gzip"),
        pytest.param("own.db", b"SQLite format 3\0" + BINARY, id="database"),
    ],
)
def test_a_damaged_file_is_reported(settings, name, content):
    put(settings, name, content)

    assert scrub(settings) == [(name, "not reached")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("metastore_db/seg0/c10.dat", BINARY + EMAIL.encode(), id="binary"),
        pytest.param("alerts.toml", f'to = ["mailto://{EMAIL}"]'.encode(), id="settings"),
        *(
            (f"{folder}/a.txt", EMAIL.encode())
            for folder in ("warehouse", "inbox", "archive", "rejected", "privacy")
        ),
    ],
)
def test_other_files_stay_as_they_are(settings, name, content):
    file = put(settings, name, content)

    assert scrub(settings) == []
    assert file.read_bytes() == content


def test_a_link_is_not_followed(settings, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text(EMAIL, encoding="utf-8")
    settings.make_home()
    (settings.home / "link").symlink_to(outside)

    assert scrub(settings) == []
    assert outside.read_text(encoding="utf-8") == EMAIL


def test_a_shared_value_stays(settings):
    file = put(settings, "a.txt", EMAIL.encode())

    assert scrub(settings, EMAIL) == []
    assert file.read_text(encoding="utf-8") == EMAIL


def test_a_number_of_json_becomes_zero(settings):
    note = put(settings, "a.json", f'{{"n": {PASSPORT}, "m": [{PASSPORT}]}}'.encode())

    assert scrub(settings) == [("a.json", "erased")]
    assert json.loads(note.read_text()) == {"n": 0, "m": [0]}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("customer_id=7, rows=7", "customer_id=*, rows=7"),
        ("customer_id = '007'", "customer_id = '***'"),
        ('{"customer_id": 7, "rows": 7}', '{"customer_id": 0, "rows": 7}'),
        ('\\"customer_id\\": \\"7\\"', '\\"customer_id\\": \\"*\\"'),
        ("customer_id=7.0", "customer_id=***"),
        ("customer_id=71", "customer_id=71"),
        ("customer_id=7.5", "customer_id=7.5"),
        ("my_customer_id=7", "my_customer_id=7"),
    ],
)
def test_a_short_value_is_masked_after_its_column(settings, text, masked):
    file = put(settings, "a.log", text.encode())

    scrub(settings)

    assert file.read_text() == masked


def test_a_file_that_is_appended_to_keeps_its_length(settings):
    file = put(settings, "logs/spark.log", f"to {EMAIL}\n".encode())

    with file.open("ab", buffering=0) as log:
        scrub(settings)
        log.write(b"more")

    assert file.read_text() == f"to {'[erased]'.ljust(len(EMAIL.encode()), '*')}\nmore"


def test_values_at_any_offset_of_a_large_file_are_masked(settings, monkeypatch):
    monkeypatch.setattr(scrubbing, "_CHUNK_BYTES", 50)
    monkeypatch.setattr(scrubbing, "_MARGIN_BYTES", 0)
    content = b"".join(b"-" * number + EMAIL.encode() for number in range(60))
    put(settings, "a.log", content)

    scrub(settings)

    assert traces(settings.home) == []


def test_deleted_rows_are_removed_from_a_database_in_use(settings):
    file = put(settings, "own.db", b"")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE notes (note TEXT)")
        connection.execute("INSERT INTO notes VALUES (?)", (EMAIL,))
        connection.execute("DELETE FROM notes")
        connection.commit()

        assert scrub(settings) == []
        assert traces(settings.home) == []


def test_a_value_in_a_row_of_a_database_is_reported(settings):
    with closing(sqlite3.connect(put(settings, "own.db", b""))) as connection:
        connection.execute("CREATE TABLE notes AS SELECT ? AS note", (EMAIL,))
        connection.commit()

    assert scrub(settings) == [("own.db", "not reached")]
