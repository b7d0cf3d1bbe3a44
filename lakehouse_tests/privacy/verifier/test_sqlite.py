"""A person is found in a database, its free pages and its write-ahead log."""

import shutil
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing

import pytest

from lakehouse_tests.privacy.verifier.someone import EMAIL, PHONE, searched, written

pytestmark = pytest.mark.unit

OTHER = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0).execute("BEGIN IMMEDIATE")
"""


def database(home, name="catalog.db", *, journal="DELETE"):
    connection = sqlite3.connect(written(home, name))
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("CREATE TABLE runs (client, body)")
    connection.commit()
    return closing(connection)


def insert(connection, *values):
    connection.execute("INSERT INTO runs VALUES (?, ?)", values)
    connection.commit()


def kinds(report):
    return {(finding.kind, finding.how, finding.inside) for finding in report.findings}


def test_values_of_tables_are_read(tmp_path):
    with database(tmp_path) as connection:
        insert(connection, 1, "nobody")
        insert(connection, int(PHONE), zlib.compress(EMAIL.encode()))

    report = searched(tmp_path)

    found = {(item.kind, item.how) for item in report.findings}
    assert {("id", "decoded UTF-8"), ("personal value", "decoded UTF-8")} <= found


@pytest.mark.parametrize("text", ["x^2 + y^2", b"x\x9cno stream", b"\x1f\x8bno gzip"])
def test_a_value_that_only_begins_like_a_compressed_one_is_read(tmp_path, text):
    with database(tmp_path) as connection:
        insert(connection, 1, text)
        insert(connection, 4711, EMAIL)

    report = searched(tmp_path)

    assert report.gaps == ()
    assert "decoded UTF-8" in {item.how for item in report.findings}


def test_deleted_rows_are_found_in_free_pages(tmp_path):
    with database(tmp_path) as connection:
        for number in range(200):
            insert(connection, number, f"{'-' * 500}{EMAIL}")
        connection.execute("DELETE FROM runs")
        connection.commit()

    assert ("personal value", "UTF-8", "") in kinds(searched(tmp_path))


def test_rows_that_are_only_in_the_write_ahead_log_are_found(tmp_path):
    with database(tmp_path / "source", journal="WAL") as connection:
        insert(connection, int(PHONE), EMAIL)
        (tmp_path / "home").mkdir()
        for name in ("catalog.db", "catalog.db-wal"):
            shutil.copyfile(tmp_path / "source" / name, tmp_path / "home" / name)

    report = searched(tmp_path / "home")

    assert {item.file for item in report.findings} == {"catalog.db", "catalog.db-wal"}
    assert ("id", "decoded UTF-8", "table runs") in kinds(report)


def test_a_database_that_this_process_has_locked_stays_locked(tmp_path):
    with database(tmp_path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        searched(tmp_path)
        done = subprocess.run(
            [sys.executable, "-c", OTHER, tmp_path / "catalog.db"],
            capture_output=True,
            check=False,
        )

    assert b"database is locked" in done.stderr


def test_the_folder_of_a_database_is_not_changed(tmp_path):
    with database(tmp_path, journal="WAL") as connection:
        insert(connection, 1, "nobody")
        # SQLite notes its readers in the index of the log, `-shm`.
        names = ("catalog.db", "catalog.db-wal")
        before = [(tmp_path / name).read_bytes() for name in names]
        searched(tmp_path)

        assert [(tmp_path / name).read_bytes() for name in names] == before
        assert len(list(tmp_path.iterdir())) == 3
