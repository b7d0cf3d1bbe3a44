"""SQLite files hold nothing of a person, down to free pages and logs, whoever has them open."""

import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lakehouse.privacy.places import sqlite_file
from lakehouse.privacy.places.sqlite_file import SqliteResult, scrub_sqlite
from lakehouse_tests.privacy.places.a_person import EMAIL, NEIGHBOUR, finder, traces

pytestmark = pytest.mark.unit

_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement).fetchone()
print(flush=True)
sys.stdin.read()
"""

_WRITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
for number in range(300):
    with connection:
        connection.execute("INSERT INTO events (event) VALUES (?)", (sys.argv[2],))
    if not number:
        print(flush=True)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in which a person stands among others."""
    path = tmp_path / "events.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "CREATE TABLE events (id INTEGER PRIMARY KEY, event TEXT, body BLOB)"
        )
        rows = [(text, text.encode()) for text in (f"hello {EMAIL}", f"hello {NEIGHBOUR}")]
        connection.executemany("INSERT INTO events (event, body) VALUES (?, ?)", rows)
        connection.commit()
    return path


@contextmanager
def held(file: Path, *statements: str) -> Iterator[None]:
    """Let another process hold the file after some statements."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(file), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin and other.stdout
        other.stdout.readline()
        yield
        other.stdin.close()


def run(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def rows(file: Path, query: str = "SELECT event, body FROM events ORDER BY id") -> list[tuple]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def scrub(file: Path) -> SqliteResult:
    return scrub_sqlite(finder(), file, is_dry=False)


def test_values_go_from_texts_and_blobs_and_others_stay(file, tmp_path):
    assert traces(tmp_path) == ["events.db"]

    assert scrub(file).erased == 2

    neighbour = f"hello {NEIGHBOUR}"
    assert rows(file) == [
        ("hello [erased]", b"hello [erased]"),
        (neighbour, neighbour.encode()),
    ]
    assert traces(tmp_path) == []


def test_a_second_call_finds_nothing(file):
    scrub(file)
    content = file.read_bytes()

    assert scrub(file) == SqliteResult()
    assert file.read_bytes() == content


def test_a_dry_run_counts_and_changes_nothing(file):
    content = file.read_bytes()

    assert scrub_sqlite(finder(), file, is_dry=True).erased == 2
    assert file.read_bytes() == content


def test_free_pages_hold_nothing(file, tmp_path):
    run(
        file,
        "PRAGMA secure_delete = OFF",
        f"INSERT INTO events (event) VALUES (replace(hex(zeroblob(20000)), '00', '{EMAIL_IN_SQL}'))",
        "DELETE FROM events",
    )
    assert traces(tmp_path) == ["events.db"]

    scrub(file)

    assert traces(tmp_path) == []


def test_what_is_left_of_a_row_in_its_page_goes(file, tmp_path):
    scrub(file)
    run(file, f"INSERT INTO events (event) VALUES ('{EMAIL_IN_SQL}')")
    run(file, "PRAGMA secure_delete = OFF", "DELETE FROM events WHERE id = 3")
    assert traces(tmp_path) == ["events.db"]

    scrub(file)

    assert traces(tmp_path) == []


def test_the_log_holds_nothing_while_others_have_the_file_open(file, tmp_path):
    long_log = [
        f"INSERT INTO events (event) VALUES (replace(hex(zeroblob(2000)), '00', '{EMAIL_IN_SQL}'))"
    ] * 20
    with held(file, *long_log, "DELETE FROM events WHERE id > 1"):
        assert "events.db-wal" in traces(tmp_path)

        result = scrub(file)

        assert not result.is_busy
        assert traces(tmp_path) == []


def test_a_file_without_a_log_leaves_no_journal(file, tmp_path):
    run(file, "PRAGMA journal_mode = DELETE")

    scrub(file)

    assert traces(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["events.db"]


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_what_another_process_writes_is_as_it_was_and_done_by_the_next_call(
    file, monkeypatch, mode
):
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.1)
    run(file, f"PRAGMA journal_mode = {mode}")
    before = rows(file)
    with held(file, "BEGIN IMMEDIATE"):
        assert scrub(file).is_busy
        assert rows(file) == before

    assert not scrub(file).is_busy
    assert rows(file)[0] == ("hello [erased]", b"hello [erased]")


def test_what_another_process_reads_is_done_and_its_log_said_to_be_left(
    file, tmp_path, monkeypatch
):
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.1)
    with held(file, "BEGIN", "SELECT * FROM events"):
        assert scrub(file).is_busy

    assert not scrub(file).is_busy
    assert traces(tmp_path) == []


def test_others_write_meanwhile_and_lose_nothing(file, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", _WRITE, str(file), EMAIL], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        other.stdout.readline()
        while other.poll() is None:
            assert scrub(file).problem == ""
    scrub(file)

    assert other.returncode == 0
    assert rows(file, "SELECT count(*) FROM events") == [(302,)]
    assert traces(tmp_path) == []


def test_compressed_contents_stay_compressed(file):
    body = zlib.compress(f'{{"customer_id": 7, "email": "{EMAIL}"}}'.encode())
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE events SET body = ? WHERE id = 1", (body,))
        connection.commit()

    scrub(file)

    assert zlib.decompress(rows(file)[0][1]) == b'{"customer_id": 0, "email": "[erased]"}'


def test_a_text_that_is_no_utf_8_keeps_its_other_bytes(file):
    run(file, "CREATE TABLE notes (note TEXT)")
    with closing(sqlite3.connect(file)) as connection:
        note = b"\xff " + EMAIL.encode()
        connection.execute("INSERT INTO notes VALUES (CAST(? AS TEXT))", (note,))
        connection.commit()

    scrub(file)

    query = "SELECT CAST(note AS BLOB), typeof(note) FROM notes"
    assert rows(file, query) == [(b"\xff [erased]", "text")]


def test_values_that_are_there_once_only_stay_apart(file):
    run(
        file,
        "CREATE TABLE keys (name TEXT UNIQUE)",
        f"INSERT INTO keys VALUES ('{EMAIL_IN_SQL}'), ('[erased]')",
    )

    scrub(file)

    assert rows(file, "SELECT name FROM keys ORDER BY 1") == [("[erased]",), ("[erased] 1",)]


def test_a_short_id_goes_from_a_column_of_its_name(file):
    run(
        file,
        "CREATE TABLE orders (customer_id INTEGER, rows INTEGER, note TEXT)",
        "INSERT INTO orders VALUES (7, 7, '007'), (8, 7, '7')",
    )

    assert scrub(file).erased == 3

    assert rows(file, "SELECT * FROM orders") == [(0, 7, "007"), (8, 7, "7")]


def test_a_table_without_row_ids_is_searched_too(file):
    run(
        file,
        "CREATE TABLE notes (a TEXT, b INT, note TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID",
        f"INSERT INTO notes VALUES ('x', 1, '{EMAIL_IN_SQL}'), ('x', 2, 'y')",
    )

    scrub(file)

    assert rows(file, "SELECT * FROM notes") == [("x", 1, "[erased]"), ("x", 2, "y")]


def test_the_pointers_of_a_catalog_are_left_and_said(tmp_path):
    file = tmp_path / "catalog.db"
    run(
        file,
        "CREATE TABLE iceberg_tables (table_name TEXT, metadata_location TEXT)",
        f"INSERT INTO iceberg_tables VALUES ('fruits', 'file:///{EMAIL_IN_SQL}')",
    )

    result = scrub(file)

    assert (result.erased, result.kept_names) == (0, 1)
    assert rows(file, "SELECT metadata_location FROM iceberg_tables") == [(f"file:///{EMAIL}",)]


def test_a_damaged_file_is_said_to_be_unread(file):
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"\xff" * (len(content) - 100))

    assert scrub(file).problem == "DatabaseError"


@pytest.mark.parametrize("step", ["_apply", "_checkpoint", "_raw_values"])
@pytest.mark.parametrize("is_before", [True, False])
def test_ended_at_any_step_the_next_call_does_the_rest(
    file, tmp_path, monkeypatch, step, is_before
):
    real = getattr(sqlite_file, step)

    def ending(*arguments):
        if not is_before:
            real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sqlite_file, step, ending)
        scrub(file)
    scrub(file)

    assert rows(file)[0] == ("hello [erased]", b"hello [erased]")
    assert traces(tmp_path) == []


EMAIL_IN_SQL = EMAIL.replace("'", "''")
