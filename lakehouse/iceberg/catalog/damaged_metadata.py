"""Convert client errors about unreadable catalogs and metadata to errors that name the object."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.errors import SetupError, TableDamaged, TableNotFound, TypeUnsupported
from lakehouse.iceberg.catalog.catalog_file import damaged

_SUPPORTED = (
    "boolean, int, long, float, double, decimal, date, time, timestamp, timestamptz, both of them"
    " in nanoseconds, string, uuid, fixed, binary, struct, list or map"
)
_UNKNOWN_TYPE = re.compile(
    r"(?:Type not recognized: |Unsupported field type: '|Could not parse )"
    r"(?P<type>[a-z]\w*(?:\([^()\n]*\))?)(?:'? \[| into a |'?$)",
    re.MULTILINE,
)
"""PyIceberg's messages for unknown types, alone or inside a list of validation errors."""


@contextmanager
def explain_catalog(place: str) -> Iterator[None]:
    """Convert database errors to errors that name the catalog and the next step.

    :raises CatalogDamaged: if the file is not a database.
    :raises SetupError: if it cannot be opened, for example because it is locked.
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
    """Convert metadata errors to errors that name the table and the next step.

    :raises TableNotFound: if the catalog has no such table.
    :raises TableDamaged: if a metadata file is missing or invalid.
    :raises TypeUnsupported: if a column has an unsupported type.
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
                "Restore the file from a backup; `lakehouse doctor` lists all missing files."
            ),
        ) from error
    except (ValueError, ValidationError) as error:
        if types := _UNKNOWN_TYPE.findall(str(error)):
            found = " and ".join(sorted(set(types)))
            raise TypeUnsupported(
                f"{table} has a column of the type {found}, which only Spark can read; expected"
                f" {_SUPPORTED}. Nothing of the table is damaged.",
                next_step=(
                    "`lakehouse sql` reads and writes it. For other commands store the column as"
                    " text, such as with to_json(…), in a table without that type."
                ),
            ) from error
        # Metadata is not text, not JSON, or not a table's. PyIceberg's message quotes the file.
        raise TableDamaged(
            f"{table} is damaged: its metadata cannot be read; expected the JSON of an Iceberg"
            " table.",
            next_step="Restore the newest file of its metadata folder from a backup.",
        ) from error


def _named(error: FileNotFoundError) -> str:
    match = re.search(r"'([^']+)'|(\S+/\S+)", str(error))
    return match[1] or match[2] if match else str(error)
