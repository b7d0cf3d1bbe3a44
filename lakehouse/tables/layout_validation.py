"""Checks of column names that would fail, or lose data, in a run."""

from collections.abc import Sequence

from lakehouse.errors import DeclarationError
from lakehouse.tables.column import Column
from lakehouse.tables.declaration import TableDeclaration

INTERNAL_PREFIX = "__"
"""Starts the name of each column that the lakehouse adds to a DataFrame and does not store."""
ICEBERG_NAMES = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
    }
)
"""Iceberg's metadata columns."""
INGEST_NAMES = frozenset(
    {"_source_file", "_source_sha256", "_source_modified_at", "_source_row", "_ingested_at"}
)
"""The columns that an ingest adds to bronze; other tables can keep them."""
QUARANTINE_NAMES = frozenset({"_row_key", "_reasons", "_quarantined_at"})
"""The columns that only a quarantine has."""


def reserved_for(name: str) -> str:
    """Return what a column name is reserved for, in any case; "" if a table can declare it."""
    lowered = name.lower()
    if lowered in ICEBERG_NAMES:
        return "Iceberg's metadata columns"
    if lowered in QUARANTINE_NAMES:
        return "quarantine tables"
    if lowered in INGEST_NAMES and name != lowered:
        return f"the ingest, which writes it as {lowered}"
    return "internal columns" if name.startswith(INTERNAL_PREFIX) else ""


def suggest_name(name: str) -> str:
    """Return a name to suggest in place of a reserved one."""
    return name.strip("_").lower() or "column_1"


def check_layout(table: TableDeclaration, of_quarantine: Sequence[Column]) -> None:
    """Check the names of columns. `of_quarantine` are columns that a quarantine declares under
    reserved names.
    """
    _check_names(table, of_quarantine)
    _check_dropped(table)


def can_be_read(name: str) -> bool:
    """Return whether Spark can resolve a name: it splits at dots and replaces `${`."""
    return bool(name.strip()) and "." not in name and "${" not in name


def _check_names(table: TableDeclaration, of_quarantine: Sequence[Column]) -> None:
    for column in table.columns:
        name, owner = column.name, reserved_for(column.name)
        if owner and column not in of_quarantine:
            raise DeclarationError(
                f"{table.name} declares the column {name}: the name is reserved for {owner}.",
                next_step=(
                    f"Call it {suggest_name(name)!r}; if the table already has the column, add"
                    f" renamed_from={name!r}."
                ),
            )
        if not can_be_read(name):
            raise DeclarationError(
                f"{table.name} declares the column {name!r}; expected a name without dots,"
                " which separate nested fields, and without ${, which Spark replaces.",
                next_step="Give the column another name.",
            )


def _check_dropped(table: TableDeclaration) -> None:
    still = sorted(
        {name.lower() for name in table.dropped} & {name.lower() for name in table.column_names}
    )
    if still:
        raise DeclarationError(f"{table.name} both declares and drops {', '.join(still)}.")
