"""A person is found in a database, in its free pages and in the log beside it."""

import json
import shutil
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import search
from lakehouse_tests.privacy.verifier.someone import (
    COLUMNS,
    EMAIL,
    PERSON,
    PHONE,
    searched,
    written,
)

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

    rows = {(item.how, item.column, item.row, item.count) for item in report.findings}
    assert ("column", "client", 2, 2) in rows
    assert ("decoded UTF-8", "", 2, 1) in rows


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


PAGE_ENDS = (600, 600 + 4092, 600 + 2 * 4092)
"""Where in a row of 12,876 bytes the first page ends, and the two that it goes on in."""
ROW_BYTES, ROW_HEADER_BYTES = 600 + 3 * 4092, 5


@pytest.mark.parametrize(
    ("page_end", "is_freed_first"),
    # The first page that is freed lists the others, in place of the value's first bytes.
    [*((end, False) for end in PAGE_ENDS), *((end, True) for end in PAGE_ENDS[1:])],
)
@settings(max_examples=20)
@given(before=st.integers(1, len(EMAIL)))
def test_a_deleted_value_is_found_across_the_border_of_pages(
    tmp_path_factory, page_end, is_freed_first, before
):
    home = tmp_path_factory.mktemp("home")
    text = "-" * (page_end - ROW_HEADER_BYTES - before) + EMAIL
    text += "-" * (ROW_BYTES - ROW_HEADER_BYTES - len(text.encode()))
    with database(home) as connection:
        if not is_freed_first:
            insert(connection, None, "-" * 9000)
        insert(connection, None, text)
        insert(connection, None, "stays")
        connection.execute("DELETE FROM runs WHERE body != 'stays'")
        connection.commit()

    assert "personal value" in {finding.kind for finding in searched(home).findings}


def test_two_values_side_by_side_are_not_one_number(tmp_path):
    with database(tmp_path) as connection:
        insert(connection, PHONE, "5 Main Street")
        connection.execute("DELETE FROM runs")
        connection.commit()

    assert ("id", "UTF-8", "") in kinds(searched(tmp_path))


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


def test_a_database_that_is_written_to_meanwhile_is_read_anew(tmp_path):
    class Written(FolderRoot):
        """A database that somebody writes to as soon as it was opened."""

        def open(self, entry):
            file = super().open(entry)
            if entry.key == "catalog.db" and not opened:
                opened.append(entry)
                insert(connection, 4711, "late")
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
                insert(connection, 1, "log begun anew")
            return file

    opened = []
    with database(tmp_path, journal="WAL") as connection:
        insert(connection, 1, "nobody")
        report = search([Written(tmp_path)], [PERSON], COLUMNS)

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
