"""Command that shows the unmasked rows of a sample to users with access to the home."""

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
    """Return the command for the sample rows of the first file; None if it is unknown.

    :param standing_in: table that contains the rows, with a version if it is not the current.
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
    """Return the table to query for the input rows of a write; empty if there is none."""
    if has_source(table.column_names):
        candidate = outcome.branch if isinstance(outcome, Refused) else ""
        return f"{table.name} VERSION AS OF {literal(candidate)}" if candidate else table.name
    read = dict.fromkeys(pin.table for pin in outcome.pins.values() if pin.snapshot_id)
    return next(
        (name for name in read if has_source(catalog.load(name).schema().column_names)), ""
    )


def has_source(columns: Sequence[str]) -> bool:
    """Whether rows have their source file and their row number in it."""
    return {_FILE, _ROW} <= {*columns}


def _in_shell(text: str) -> str:
    """Return a shell word, in double quotes if possible since SQL uses single quotes."""
    if any(sign in text for sign in "$`!"):
        return quote(text)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
