"""The command that shows the rows of a sample in clear, to who may read the home: samples and
messages mask them.
"""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.write_result import Outcome, Refused
from lakehouse.tables.quoting import literal, literals

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.catalog import Catalog
    from lakehouse.tables.table import IcebergTable

_FILE, _ROW = "_source_file", "_source_row"


def in_clear(rows: Sequence[Mapping[str, Any]], standing_in: str) -> str | None:
    """Return the command that shows the rows of a sample, those of its first file; None where
    that is not known.

    :param standing_in: the table that they stand in, with the version where it is not the
        current one.
    """
    known = [
        row for row in rows if row.get(_FILE) is not None and isinstance(row.get(_ROW), int)
    ]
    if not known or not standing_in:
        return None
    file = str(known[0][_FILE])
    numbers = sorted({row[_ROW] for row in known if row[_FILE] == file})
    which = f"= {numbers[0]}" if len(numbers) == 1 else f"IN {literals(numbers)}"
    query = f"SELECT * FROM {standing_in} WHERE {_FILE} = {literal(file)} AND {_ROW} {which}"
    return f"lakehouse sql {_in_shell(query)}"


def table_of_rows(catalog: "Catalog", table: "IcebergTable", outcome: Outcome) -> str:
    """Return where the rows that a write was given can be looked at by their file and row;
    nothing where nowhere.
    """
    if has_source(table.column_names):
        candidate = outcome.branch if isinstance(outcome, Refused) else ""
        return f"{table.name} VERSION AS OF {literal(candidate)}" if candidate else table.name
    read = dict.fromkeys(pin.table for pin in outcome.pins.values() if pin.snapshot_id)
    return next(
        (name for name in read if has_source(catalog.load(name).schema().column_names)), ""
    )


def has_source(columns: Sequence[str]) -> bool:
    """Whether rows say which delivered file they came with, and where in it they stood."""
    return {_FILE, _ROW} <= {*columns}


def _in_shell(text: str) -> str:
    """Return a text as one word of a shell: in double quotes, which leave those of SQL as they
    are, where they can.
    """
    if any(sign in text for sign in "$`!"):
        return quote(text)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
