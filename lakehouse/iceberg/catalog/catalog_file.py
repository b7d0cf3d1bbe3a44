"""Checks of the embedded catalog's file before a client silently creates an empty one.

Only SQLite opens it: closing it otherwise would release its locks
(https://sqlite.org/howtocorrupt.html).
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lakehouse.errors import CatalogDamaged

_TABLES = ("iceberg_tables", "iceberg_namespace_properties")
_UNIQUE = re.compile(r"-[0-9a-f-]{32,36}$")
"""The suffix that makes a table location unique."""
_RESTORE = (
    "docs/operations.md, `Files are lost`, says how its tables are registered again from their"
    " files, and what a backup of it lacks."
)


def require_catalog_file(file: Path, warehouse: Path) -> None:
    """Require a catalog that is no empty one next to a warehouse with tables.

    :raises CatalogDamaged: when tables would start empty, or the file is no database.
    """
    metadata = None
    if _is_unused(file):
        metadata = next(warehouse.glob("*/*/metadata/*.metadata.json"), None)
    if metadata:
        condition = "empty" if file.exists() else "missing"
        raise CatalogDamaged(
            f"The catalog {file} is {condition}, and {warehouse} holds tables, such as"
            f" {_table(metadata)}: nothing is read or written, since every table would start"
            " empty beside them.",
            next_step=f"{_RESTORE} To start from scratch, move {warehouse} away.",
        )


def require_own_tables(home: Path) -> None:
    """Reject a home that was moved or copied: upkeep would delete files of the original.

    :raises CatalogDamaged: names a table and the home with its files.
    """
    strays = {
        table: file
        for table, file in _metadata_files(home / "catalog.db").items()
        if _is_of_another_home(home, table, file)
    }
    if not strays:
        return
    table, file = next(iter(strays.items()))
    former = str(file).rpartition("/warehouse/")[0]
    tables = f"{len(strays)} table{'s' if len(strays) > 1 else ''}, such as {table}"
    raise CatalogDamaged(
        f"{home} was moved or copied: the files of {tables}, are in {former}.",
        next_step=(
            f"Move it back to {former}, or set LAKEHOUSE_HOME to that; `lakehouse copy` makes a"
            " copy with files of its own."
        ),
    )


def _is_of_another_home(home: Path, table: str, file: Path) -> bool:
    # A symbolic link to the home is allowed.
    is_below = file.resolve().is_relative_to(home.resolve())
    # A table with a declared location can be outside of the home.
    return not is_below and f"/warehouse/{table.partition('.')[0]}/" in str(file)


def _metadata_files(catalog_file: Path) -> dict[str, Path]:
    """Read table locations from the embedded catalog; a moved catalog cannot load its tables."""
    if not catalog_file.exists():
        return {}
    query = "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables"
    try:
        with closing(_open(catalog_file)) as connection:
            rows = connection.execute(query).fetchall()
    except sqlite3.DatabaseError:
        # The catalog has no tables yet or is damaged; its clients report damage.
        return {}
    # Iceberg writes `file:/x` as well as `file:///x`.
    return {
        table: Path("/" + location.removeprefix("file:").lstrip("/"))
        for table, location in rows
        if location
    }


def check_catalog_file(file: Path) -> None:
    """Read the entire catalog file.

    :raises CatalogDamaged: if a part of it cannot be read.
    """
    with _explained(file), closing(_open(file)) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise damaged(file, result)


def damaged(file: Path | str, reason: str) -> CatalogDamaged:
    return CatalogDamaged(
        f"The catalog {file} is damaged: {reason}; expected the database that lists the tables."
        " Their files are not touched.",
        next_step=_RESTORE,
    )


def _is_unused(file: Path) -> bool:
    if not file.exists() or not file.stat().st_size:
        return True
    if not file.is_file():
        return False
    try:
        with _explained(file), closing(_open(file)) as connection:
            return not _has_names(connection)
    except sqlite3.OperationalError:
        # The file is locked or its folder is not writable. That is no damage, and its clients
        # report it.
        return False


def _has_names(connection: sqlite3.Connection) -> bool:
    listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    names = {name for (name,) in listed}.intersection(_TABLES)
    return any(connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in names)


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise damaged(file, str(error)) from error


def _table(metadata: Path) -> str:
    """Return the name of a metadata file's table, from its folder."""
    folder = metadata.parent.parent
    return f"{folder.parent.name}.{_UNIQUE.sub('', folder.name)}"
