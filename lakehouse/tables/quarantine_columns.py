"""The columns of a quarantine: those of its table as delivered, and its own."""

from dataclasses import replace

from lakehouse.tables.column import Column

QUARANTINE_COLUMNS = (
    Column(
        "_row_key",
        "string",
        "What identifies the rejected row: a hash of its source file, content and row.",
    ),
    Column("_reasons", "array<string>", "Names of the rules that the row breaks."),
    Column("_source_file", "string", "The delivered file that the row came with."),
    Column("_source_sha256", "string", "SHA-256 of that file's content."),
    Column(
        "_source_row",
        "bigint",
        "Number of the row in its file, the first after the header being 1.",
    ),
    Column(
        "_quarantined_at",
        "timestamp",
        "When the row was rejected or last changed.",
        required=True,
    ),
)
QUARANTINE_COLUMN_NAMES = frozenset(column.name for column in QUARANTINE_COLUMNS)
QUARANTINE_NAMES = frozenset({"_row_key", "_reasons", "_quarantined_at"})
"""The columns that only a quarantine has."""


def as_delivered(column: Column) -> Column:
    """Return the column of a quarantine that has the delivered text of a column."""
    return replace(
        column,
        type="string",
        doc=f"{column.name} as delivered. {column.doc}".strip(),
        required=False,
        profiled=False,
        renamed_from=tuple(
            name for name in column.renamed_from if name.lower() not in QUARANTINE_COLUMN_NAMES
        ),
    )
