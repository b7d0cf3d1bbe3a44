"""The file of the embedded catalog, looked at before a client opens it, which would make an
empty one in silence.

Only SQLite itself opens the file: to close it in any other way takes away the locks that this
process has on it, after which another one may delete the log of changes that this one goes on
reading (https://sqlite.org/howtocorrupt.html).
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lakehouse.errors import CatalogDamaged

_TABLES = ("iceberg_tables", "iceberg_namespace_properties")
_UNIQUE = re.compile(r"-[0-9a-f-]{32,36}$")
"""What a location ends in so that no other table has the same."""
_RESTORE = (
    "docs/operations.md, `Files are lost`, says how its tables are registered again from their"
    " files, and what a backup of it lacks."
)


def require_catalog_file(file: Path, warehouse: Path) -> None:
    """Make sure that the catalog is one, and is not missing beside a warehouse that holds
    tables.

    One that was never written to is as good as none. Where tables were dropped, their
    namespaces are still known.

    :raises CatalogDamaged: when tables would start empty beside those that are there, or the
        file is no database.
    """
    if _is_unused(file) and (metadata := _some_metadata(warehouse)):
        condition = "empty" if file.exists() else "missing"
        raise CatalogDamaged(
            f"The catalog {file} is {condition}, and {warehouse} holds tables, such as"
            f" {_table(metadata)}: nothing is read or written, since every table would start"
            " empty beside them.",
            next_step=f"{_RESTORE} To start from scratch, move {warehouse} away.",
        )


def check_catalog_file(file: Path) -> None:
    """Read all of the catalog's file.

    :raises CatalogDamaged: when a part of it cannot be read.
    """
    with _explained(file), closing(_open(file)) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise damaged(file, result)


def damaged(file: Path | str, reason: str) -> CatalogDamaged:
    """Return the error that says that a catalog cannot be read."""
    return CatalogDamaged(
        f"The catalog {file} is damaged: {reason}; expected the database that lists the tables."
        " Their files are not touched.",
        next_step=_RESTORE,
    )


def _is_unused(file: Path) -> bool:
    """Whether no table and no namespace was ever made in it."""
    if not file.exists() or not file.stat().st_size:
        return True
    if not file.is_file():
        return False
    try:
        with _explained(file), closing(_open(file)) as connection:
            return not _has_names(connection)
    except sqlite3.OperationalError:
        # Locked, or in a folder that may not be written: no damage, and whoever opens it next
        # says what it is.
        return False


def _has_names(connection: sqlite3.Connection) -> bool:
    listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    known = {name for (name,) in listed}
    for name in known.intersection(_TABLES):
        if connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone():
            return True
    return False


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
    """Return the name of the table that a metadata file is of, from its folder."""
    folder = metadata.parent.parent
    return f"{folder.parent.name}.{_UNIQUE.sub('', folder.name)}"


def _some_metadata(warehouse: Path) -> Path | None:
    return next(warehouse.glob("*/*/metadata/*.metadata.json"), None)
