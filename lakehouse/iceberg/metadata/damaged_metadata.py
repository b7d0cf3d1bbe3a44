"""What a client raises where a catalog or a table's metadata cannot be read, as errors of ours
that name it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lakehouse.errors import SetupError, TableDamaged, TableNotFound, TypeUnsupported
from lakehouse.iceberg.metadata.catalog_file import damaged

_SUPPORTED = (
    "boolean, int, long, float, double, decimal, date, time, timestamp, timestamptz, both of them"
    " in nanoseconds, string, uuid, fixed, binary, struct, list or map"
)
_REFUSED_TYPE = re.compile(
    r"(?:Type not recognized: |Unsupported field type: '|Could not parse )"
    r"(?P<type>[a-z]\w*(?:\([^()\n]*\))?)(?:'? \[| into a |'?$)",
    re.MULTILINE,
)
"""How PyIceberg says that it does not know a type, alone or among the faults of a whole file."""


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
    :raises TypeUnsupported: when a column has a type that is not known here.
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
        if types := _REFUSED_TYPE.findall(str(error)):
            raise _unsupported(table, types) from error
        # Metadata that is no text, no JSON, or not that of a table; what PyIceberg says of it
        # quotes the file.
        raise TableDamaged(
            f"{table} is damaged: its metadata cannot be read; expected the JSON of an Iceberg"
            " table.",
            next_step="Put the newest file of its metadata folder back from a backup.",
        ) from error


def _unsupported(table: str, types: Sequence[str]) -> TypeUnsupported:
    found = " and ".join(sorted(set(types)))
    return TypeUnsupported(
        f"{table} has a column of the type {found}, which Spark alone reads here; expected"
        f" {_SUPPORTED}. Nothing of the table is damaged.",
        next_step=(
            "`lakehouse sql` reads and writes it. For all else keep that column as text, such as"
            " by to_json(…), in a table without that type."
        ),
    )


def _named(error: FileNotFoundError) -> str:
    match = re.search(r"'([^']+)'|(\S+/\S+)", str(error))
    return match[1] or match[2] if match else str(error)
