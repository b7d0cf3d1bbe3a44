"""A person is found in a database, in its free pages and in the log beside it."""

import json
import shutil
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing

import pytest

from lakehouse.privacy.verifier import records
from lakehouse.privacy.verifier.roots import copy_by_another_process
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
    body = json.dumps({"metadata": json.dumps({"client": "4711"})})
    with database(tmp_path) as connection:
        insert(connection, 1, "nobody")
        insert(connection, 4711, zlib.compress(EMAIL.encode()))
        insert(connection, None, body)

    report = searched(tmp_path)

    rows = {(item.how, item.column) for item in report.findings}
    assert {("column", "client"), ("decoded UTF-8", "")} <= rows


def test_a_long_integer_is_found_in_a_column_of_any_name(tmp_path):
    with database(tmp_path) as connection:
        connection.execute("CREATE TABLE notes AS SELECT ? AS n", (int(PHONE),))
        connection.commit()

    assert ("id", "decoded UTF-8", "table notes") in kinds(searched(tmp_path))


@pytest.mark.parametrize("text", ["x^2 + y^2", b"x\x9cno stream", b"\x1f\x8bno gzip"])
def test_a_value_that_only_begins_as_what_is_packed_is_read_as_it_is(tmp_path, text):
    with database(tmp_path) as connection:
        insert(connection, 1, text)
        insert(connection, 4711, EMAIL)

    report = searched(tmp_path)

    assert report.gaps == ()
    assert "decoded UTF-8" in {item.how for item in report.findings}


def test_what_was_deleted_is_found_in_free_pages(tmp_path):
    with database(tmp_path) as connection:
        for number in range(200):
            insert(connection, number, f"{'-' * 500}{EMAIL}")
        connection.execute("DELETE FROM runs")
        connection.commit()

    assert ("personal value", "UTF-8", "") in kinds(searched(tmp_path))


def test_nothing_is_left_after_a_vacuum(tmp_path):
    with database(tmp_path) as connection:
        insert(connection, 4711, EMAIL)
        connection.execute("DELETE FROM runs")
        connection.commit()
        connection.execute("VACUUM")

    assert searched(tmp_path).findings == ()


def test_what_only_the_log_has_is_found(tmp_path):
    with database(tmp_path / "source", journal="WAL") as connection:
        insert(connection, 4711, EMAIL)
        (tmp_path / "home").mkdir()
        for name in ("catalog.db", "catalog.db-wal"):
            shutil.copyfile(tmp_path / "source" / name, tmp_path / "home" / name)

    report = searched(tmp_path / "home")

    assert {item.file for item in report.findings} == {"catalog.db", "catalog.db-wal"}
    assert ("id", "column", "table runs") in kinds(report)
    assert {item.place for item in report.findings} == {"catalog db"}


def test_a_database_that_another_process_changes_is_copied_again(tmp_path, monkeypatch):
    with database(tmp_path, journal="WAL") as connection:
        insert(connection, 1, "nobody")
        copies = []

        def copy_and_change(source, target):
            copy_by_another_process(source, target)
            copies.append(source)
            if len(copies) == 1:
                insert(connection, 4711, "late")

        monkeypatch.setattr(records, "copy_by_another_process", copy_and_change)
        report = searched(tmp_path)

    assert ("id", "column", "table runs") in kinds(report)
    assert report.gaps == ()


def test_what_a_log_still_has_after_it_was_written_back_is_found(tmp_path):
    with database(tmp_path / "source", journal="WAL") as connection:
        insert(connection, 1, EMAIL)
        connection.execute("DELETE FROM runs")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        connection.execute("VACUUM")
        (tmp_path / "home").mkdir()
        for name in ("catalog.db", "catalog.db-wal"):
            shutil.copyfile(tmp_path / "source" / name, tmp_path / "home" / name)

    report = searched(tmp_path / "home")

    assert "catalog.db-wal" in {item.file for item in report.findings}


def test_a_journal_to_roll_back_by_is_searched(tmp_path):
    with database(tmp_path, journal="PERSIST") as connection:
        insert(connection, 1, EMAIL)
        connection.execute("DELETE FROM runs")
        connection.commit()
        connection.execute("VACUUM")

    assert "catalog.db-journal" in {item.file for item in searched(tmp_path).findings}


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


def test_nothing_is_changed_in_the_folder_of_a_database(tmp_path):
    with database(tmp_path, journal="WAL") as connection:
        insert(connection, 1, "nobody")
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        searched(tmp_path)

        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
