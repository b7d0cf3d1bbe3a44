"""Column names that no declaration can use: the lakehouse or Iceberg fills them."""

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
