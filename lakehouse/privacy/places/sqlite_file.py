"""One SQLite file: values in its rows are overwritten in one transaction, and then nothing of what
stood there is left in free pages, in the log or in a journal.

Others may have it open: they wait for the transaction, or this waits for them, and where they do
not let go, the file is as it was. No row is removed.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.privacy.places.contents import Scrubbed, scrub_content, scrub_text
from lakehouse.privacy.places.file_patching import count_values
from lakehouse.privacy.places.json_values import JsonScrubber
from lakehouse.privacy.places.value_finder import ValueFinder
from lakehouse.tables.quoting import identifier

HEADER = b"SQLite format 3\x00"
SIDES = ("-wal", "-shm", "-journal")
"""How the files beside one end, which are a part of it."""
BUSY_SECONDS = 10.0
"""How long is waited for others; what they hold longer is done by the next call."""
_PASSES = 3
_ROW_IDS = ("rowid", "_rowid_", "oid", "rowid_")
_NAMES = frozenset(
    {
        # Of Iceberg's catalog.
        "catalog_name",
        "iceberg_type",
        "metadata_location",
        "namespace",
        "previous_metadata_location",
        "table_name",
        "table_namespace",
        # Of Dagster.
        "asset_key",
        "check_name",
        "concurrency_key",
        "dagster_event_type",
        "job_name",
        "job_origin_id",
        "last_run_id",
        "pipeline_name",
        "repository_origin_id",
        "repository_selector_id",
        "run_id",
        "selector_id",
        "snapshot_id",
        "step_key",
    }
)
"""Columns of names by which things are found: a value in one of them is left, and said."""


@dataclass
class SqliteResult:
    """What was found in a file."""

    erased: int = 0
    shared: int = 0
    kept_names: int = 0
    not_read: int = 0
    """Cells of a kind that cannot be read."""
    raw_values: int = 0
    """Values in the file's bytes that are in no row which is read."""
    is_busy: bool = False
    problem: str = ""


@dataclass(frozen=True)
class _Table:
    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class _Change:
    """A cell, what it held when it was read, and what it is to hold."""

    table: _Table
    key: tuple[Any, ...]
    column: str
    before: Any
    after: Any


def scrub_sqlite(finder: ValueFinder, file: Path, *, is_dry: bool) -> SqliteResult:
    """Overwrite the values in a file; a dry run counts them."""
    result = SqliteResult()
    if not file.is_file():
        return result
    try:
        with closing(_open(file)) as connection:
            _scrub(finder, connection, file, result, is_dry=is_dry)
    except sqlite3.Error as error:
        result.is_busy = is_locked(error)
        # Its text may quote a value.
        result.problem = "" if result.is_busy else type(error).__name__
    return result


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another process holds the file."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _open(file: Path) -> sqlite3.Connection:
    # Not made where it went away.
    address = f"{file.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    return connection


def _scrub(
    finder: ValueFinder,
    connection: sqlite3.Connection,
    file: Path,
    result: SqliteResult,
    *,
    is_dry: bool,
) -> None:
    changes = list(_changes(finder, connection, result))
    if is_dry:
        return
    was_changed = bool(changes)
    for _ in range(_PASSES):
        if not changes:
            break
        _apply(connection, changes)
        # What others added since, and what they changed in between.
        changes = list(_changes(finder, connection, result))
    is_small = _free_pages(connection) == 0
    if was_changed or not is_small or _raw_values(finder, file):
        _checkpoint(connection)
        connection.execute("VACUUM")
    result.is_busy = bool(changes) or not _checkpoint(connection)
    result.raw_values = 0 if result.is_busy else _raw_values(finder, file)


def _changes(
    finder: ValueFinder, connection: sqlite3.Connection, result: SqliteResult
) -> Iterator[_Change]:
    result.kept_names = result.not_read = result.shared = 0
    for table in _tables(connection):
        names = ", ".join(map(identifier, (*table.keys, *table.columns)))
        query = f"SELECT {names} FROM {identifier(table.name)}"
        for row in connection.execute(query):
            key, cells = row[: len(table.keys)], row[len(table.keys) :]
            for column, cell in zip(table.columns, cells, strict=True):
                after = _cell(finder, column, cell, result)
                if after is not cell:
                    yield _Change(table, key, column, cell, after)


def _cell(finder: ValueFinder, column: str, cell: Any, result: SqliteResult) -> Any:
    """Return what a cell is to hold: itself, where no value stands in it."""
    after, scrubbed = _scrubbed_cell(finder, column, cell)
    result.not_read += not scrubbed.is_read
    result.shared += scrubbed.shared
    is_name = column in _NAMES
    result.kept_names += scrubbed.kept_names + (scrubbed.erased if is_name else 0)
    if is_name or not scrubbed.erased:
        return cell
    result.erased += scrubbed.erased
    return after


def _scrubbed_cell(finder: ValueFinder, column: str, cell: Any) -> tuple[Any, Scrubbed]:
    if not cell:
        return cell, Scrubbed(b"")
    if column in finder.wanted.columns and not isinstance(cell, bytes):
        scrubber = JsonScrubber(finder)
        after = scrubber.scrub(cell, column)
        return after, Scrubbed(b"", scrubber.erased, scrubber.shared)
    if isinstance(cell, bytes):
        scrubbed = scrub_content(finder, cell)
        return scrubbed.content, scrubbed
    if isinstance(cell, str):
        scrubbed = scrub_text(finder, cell.encode("utf-8", "surrogateescape"))
        return scrubbed.content.decode("utf-8", "surrogateescape"), scrubbed
    return cell, Scrubbed(b"")


def _tables(connection: sqlite3.Connection) -> Iterator[_Table]:
    kinds = connection.execute("PRAGMA main.table_list").fetchall()
    for _, name, kind, _, has_no_row_id, _ in kinds:
        if kind != "table" or name.startswith("sqlite_"):
            continue
        columns = connection.execute(f"PRAGMA table_info({identifier(name)})").fetchall()
        names = tuple(column[1] for column in columns)
        keys = tuple(column[1] for column in columns if column[5])
        row_id = next(alias for alias in _ROW_IDS if alias not in names)
        yield _Table(name, keys if has_no_row_id else (row_id,), names)


def _apply(connection: sqlite3.Connection, changes: Sequence[_Change]) -> None:
    """Write all cells in one transaction, but for those that somebody else changed since."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for change in changes:
            _write(connection, change)
        connection.execute("COMMIT")
    except BaseException:
        # On a full disk SQLite has done so itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _write(connection: sqlite3.Connection, change: _Change) -> None:
    keys = " AND ".join(f"{identifier(key)} IS ?" for key in change.table.keys)
    column = identifier(change.column)
    table = identifier(change.table.name)
    place = "CAST(? AS TEXT)" if isinstance(change.before, str) else "?"
    written = "CAST(? AS TEXT)" if isinstance(change.after, str) else "?"
    statement = f"UPDATE {table} SET {column} = {written} WHERE {keys} AND {column} IS {place}"
    before, after = _bound(change.before), _bound(change.after)
    try:
        connection.execute(statement, (after, *change.key, before))
    except sqlite3.IntegrityError:
        # Each value is there once only, and another one became the same.
        number = " ".join(map(str, change.key))
        apart = _bound(f"{change.after} {number}")
        connection.execute(statement, (apart, *change.key, before))


def _bound(value: Any) -> Any:
    """Return a value as SQLite takes it: bytes that are no UTF-8 may stand in a text."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _free_pages(connection: sqlite3.Connection) -> int:
    pages: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return pages


def _checkpoint(connection: sqlite3.Connection) -> bool:
    """Bring the log into the file and empty it; False where somebody reads of it."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _raw_values(finder: ValueFinder, file: Path) -> int:
    """Return how many values stand in the bytes of the file and of those beside it."""
    files = [file, *(file.with_name(f"{file.name}{side}") for side in SIDES)]
    return sum(count_values(finder, part) for part in files if part.is_file())
