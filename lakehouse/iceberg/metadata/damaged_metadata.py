"""What a client raises where a catalog or a table's metadata cannot be read, as errors of ours
that name it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.errors import SetupError, TableDamaged, TableNotFound
from lakehouse.iceberg.metadata.catalog_file import damaged


@contextmanager
def explain_catalog(place: str) -> Iterator[None]:
    """Say of a database that cannot be read which it is, and what to do.

    :raises CatalogDamaged: when it is no database any more.
    :raises SetupError: when it cannot be opened, as one that is locked.
    """
    from sqlalchemy.exc import DatabaseError, OperationalError

    try:
        yield
    except OperationalError as error:
        raise SetupError(
            f"The catalog {place} cannot be opened: {error.orig}.",
            next_step=(
                "Close other programs that have it open, and see that this user may write it."
            ),
        ) from error
    except DatabaseError as error:
        raise damaged(place, str(error.orig)) from error


@contextmanager
def explain_table(table: str) -> Iterator[None]:
    """Say of metadata that cannot be read whose it is, and what to do.

    :raises TableNotFound: when the catalog has no such table.
    :raises TableDamaged: when a file of it is missing, or is not what it should be.
    """
    from pyiceberg.exceptions import NoSuchTableError, ValidationError

    try:
        yield
    except NoSuchTableError as error:
        raise TableNotFound(
            f"There is no table {table} in the catalog.",
            next_step=(
                "`lakehouse status` lists the tables; a declared table is created by its first"
                " run."
            ),
        ) from error
    except FileNotFoundError as error:
        raise TableDamaged(
            f"{table} is damaged: its metadata file {_named(error)} is missing.",
            next_step=(
                "Put the file back from a backup; `lakehouse doctor` lists all that are"
                " missing."
            ),
        ) from error
    except (ValueError, ValidationError) as error:
        # Metadata that is no text, no JSON, or not that of a table; what PyIceberg says of it
        # quotes the file.
        raise TableDamaged(
            f"{table} is damaged: its metadata cannot be read; expected the JSON of an Iceberg"
            " table.",
            next_step="Put the newest file of its metadata folder back from a backup.",
        ) from error


def _named(error: FileNotFoundError) -> str:
    match = re.search(r"'([^']+)'|(\S+/\S+)", str(error))
    return match[1] or match[2] if match else str(error)
