"""The declaration of a feed: the columns of its files, and the bronze table that they land in."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.partitioning import check_time_zone
from lakehouse.tables.table import SOURCE_KEY, Append, Column, IcebergTable
from lakehouse.tables.table_validation import (
    ICEBERG_NAMES,
    INGEST_NAMES,
    reserved_for,
    suggest_name,
)

OnNewColumn = Literal["reject", "ignore", "add"]
After = Literal["archive", "delete", "leave"]
IngestBy = Literal["sensor", "schedule"]
_TEXT_FORMATS = ("csv", "jsonl", "json")
FORMATS = (
    *(f"{name}{end}" for name in _TEXT_FORMATS for end in ("", ".gz", ".zst")),
    "parquet",
    "avro",
)
"""Each format has a reader in `ingestion/readers/file_formats.py`; `.gz` and `.zst` are compressed.
"""
CSV_FORMATS = ("csv", "csv.gz")
"""The default formats of a feed."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""The allowed delimiters and their names."""
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")

INGEST_COLUMNS = tuple(
    Column(name, column_type, doc, required=True)
    for name, column_type, doc in (
        ("_source_file", "string", "The delivered file: its key in the feed's inbox."),
        ("_source_sha256", "string", "SHA-256 of the file's content as delivered, in hex."),
        ("_source_modified_at", "timestamp", "When the file was last modified at its source."),
        (
            "_source_row",
            "bigint",
            "Number of the row in its file, counted from 1 after the header.",
        ),
        ("_ingested_at", "timestamp", "When the ingest began that landed the row."),
    )
)
"""The columns that each bronze table has in addition to the delivered ones."""


def is_own_name(name: str) -> bool:
    """Return whether a name is reserved in bronze, ignoring case."""
    return name.lower() in INGEST_NAMES or bool(reserved_for(name))


def uncompressed(file_format: str) -> str:
    """Return the format without compression."""
    return file_format.removesuffix(".gz").removesuffix(".zst")


def nfc(name: str) -> str:
    """Return a name in the Unicode normal form in which headers are compared."""
    return unicodedata.normalize("NFC", name)


REWRITTEN = "privacy/rewritten/"
"""The prefix of the ledgers of rewritten files."""


@dataclass(frozen=True)
class FeedColumn:
    """A column of a feed's files. It has the same name in the header and in bronze, unless
    `header` is set.
    """

    name: str
    doc: str = ""
    """Its meaning."""
    optional: bool = False
    """Whether a file may lack it; then it is NULL."""
    personal: bool = False
    """Whether it identifies a person directly."""
    type: str = "string"
    """Its type in bronze. CSV has only text. In JSON, `string` is a value as written, nested
    values as JSON. Parquet and Avro files have their own types, which `lakehouse new feed`
    declares.
    """
    header: str | None = None
    """Its name in files if different, for example with dots; "" for a column with an empty
    header.
    """

    @property
    def name_in_files(self) -> str:
        """The column's name in file headers."""
        return self.name if self.header is None else self.header


@dataclass(frozen=True)
class Feed:
    """Files of one kind that arrive in `inbox/<name>/` and land in one bronze table.

    :raises DeclarationError: states the feed, the part and what was expected.
    """

    name: str
    """Lower case letters, digits and underscores."""
    columns: Sequence[FeedColumn | str]
    """The header names, in any order; a plain name is a required column."""
    table: str
    """The bronze table, `namespace.table`."""
    time_zone: str = "UTC"
    """The time zone of the feed's days; the archive has a folder per day."""
    formats: Sequence[str] = CSV_FORMATS
    """The accepted file name endings: some of `FORMATS`."""
    delimiter: str = ","
    """The field delimiter: one of `DELIMITERS`."""
    on_new_column: OnNewColumn = "reject"
    """What happens to a file with an undeclared column: the file is rejected, the column is
    ignored, or it is added to bronze as a nullable string with a warning.
    """
    subject: str | None = None
    """The column that identifies a person."""
    no_subject: str | None = None
    """Why no column identifies a person, although some are personal."""
    moment: str | None = None
    """The column with the time at which the source wrote a row. Rows of an erased data subject
    that are newer than the erasure land; without this column, none do.
    """
    max_files_per_run: int | None = None
    """The maximum number of files per run, in order of arrival; 1 for one run per file, None
    for no limit.
    """
    after: After = "archive"
    """What happens to a landed file: it is archived, deleted, or left in the inbox."""
    expected_within: timedelta | None = None
    """The maximum time between deliveries; after it, Dagster shows the bronze table as stale.
    """
    ingest_by: IngestBy = "sensor"
    """What starts runs by default: a sensor that reacts to new files, or a schedule."""
    schedule: str = "0 * * * *"
    """When the schedule runs, as a cron expression in the feed's time zone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", self.declared_columns)
        formats = (self.formats,) if isinstance(self.formats, str) else self.formats
        object.__setattr__(self, "formats", tuple(formats))
        _check(self)

    @cached_property
    def declared_columns(self) -> tuple[FeedColumn, ...]:
        """The declared columns, with plain names converted."""
        return tuple(
            FeedColumn(column) if isinstance(column, str) else column for column in self.columns
        )

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The declared names, in order."""
        return tuple(column.name for column in self.declared_columns)

    @cached_property
    def required_names(self) -> frozenset[str]:
        """The columns that each file must have."""
        return frozenset(column.name for column in self.declared_columns if not column.optional)

    @cached_property
    def _names_by_header(self) -> dict[str, str]:
        return {nfc(column.name_in_files): column.name for column in self.declared_columns}

    def named(self, header: Sequence[str]) -> tuple[str, ...]:
        """Return the bronze names of a file's header. An undeclared name is unchanged. Names in
        different Unicode normal forms are equal.
        """
        return tuple(self._names_by_header.get(nfc(name), name) for name in header)

    @property
    def has_personal_columns(self) -> bool:
        """Whether its files identify people, so that undeclared content must not be shown."""
        return self.subject is not None or any(
            column.personal for column in self.declared_columns
        )

    @property
    def delimiters(self) -> str:
        """The delimiter's name, such as `commas`."""
        return DELIMITERS[self.delimiter]

    @property
    def zone(self) -> ZoneInfo:
        """The feed's time zone."""
        return ZoneInfo(self.time_zone)

    @property
    def inbox(self) -> str:
        """The key prefix of waiting files."""
        return f"inbox/{self.name}/"

    @property
    def archive(self) -> str:
        """The key prefix of archived files."""
        return f"archive/{self.name}/"

    @property
    def rejected(self) -> str:
        """The key prefix of rejected files."""
        return f"rejected/{self.name}/"

    @property
    def rewritten(self) -> str:
        """The key prefix of the ledger of rewritten files."""
        return f"{REWRITTEN}{self.name}/"


def bronze_table(
    feed: Feed, comment: str, *, extra: Sequence[Column] = (), **declaration: Any
) -> IcebergTable:
    """Declare the bronze table of a feed: its delivered columns and the source of each row.

    Rows are appended once per file and content, so a repeated run adds nothing.

    :param comment: the description of the table.
    :param extra: columns that the asset computes, placed between the delivered and the source
        columns.
    :param declaration: other arguments of `IcebergTable`, such as `partitioning`, `owner` or
        `freshness`.
    """
    delivered = (
        Column(
            column.name,
            column.type,
            column.doc,
            personal=column.personal,
            # Data subjects are found in files by this name, and an existing bronze column of
            # this name is renamed.
            renamed_from=_former_names(column),
        )
        for column in feed.declared_columns
    )
    return IcebergTable(
        name=feed.table,
        comment=comment,
        columns=(*delivered, *extra, *INGEST_COLUMNS),
        write=Append(once_by=SOURCE_KEY),
        subject=feed.subject,
        no_subject=feed.no_subject,
        **{"time_zone": feed.time_zone, **declaration},
    )


def _former_names(column: FeedColumn) -> tuple[str, ...]:
    """Return the column's name in files, unless bronze cannot have had a column of that name."""
    if not column.header or column.header.lower() in INGEST_NAMES | ICEBERG_NAMES:
        return ()
    return (column.header,)


def _check(feed: Feed) -> None:
    if not _NAME.match(feed.name):
        raise DeclarationError(
            f"{feed.name!r} is not a feed name; expected lower case letters, digits and"
            " underscores."
        )
    _check_columns(feed)
    allowed: dict[str, tuple[Sequence[str | None], Sequence[str | None]]] = {
        "formats": (feed.formats, FORMATS),
        "delimiter": ((feed.delimiter,), tuple(DELIMITERS)),
        "on_new_column": ((feed.on_new_column,), get_args(OnNewColumn)),
        "after": ((feed.after,), get_args(After)),
        "ingest_by": ((feed.ingest_by,), get_args(IngestBy)),
        "subject": ((feed.subject,), (*feed.column_names, None)),
        "moment": ((feed.moment,), (*feed.column_names, None)),
    }
    for part, (values, known) in allowed.items():
        if not values or not set(values) <= set(known):
            raise DeclarationError(
                f"feed {feed.name}: {part} is {', '.join(map(repr, values)) or 'empty'};"
                f" expected some of {', '.join(map(repr, known))}."
            )
    _check_types(feed)
    if feed.max_files_per_run is not None and feed.max_files_per_run < 1:
        raise DeclarationError(
            f"feed {feed.name}: max_files_per_run is {feed.max_files_per_run}; expected at"
            " least 1, or None."
        )
    check_time_zone(feed.time_zone, f"feed {feed.name}")


def _check_columns(feed: Feed) -> None:
    if not feed.required_names:
        raise DeclarationError(
            f"feed {feed.name} has no required column; expected one, to know its files by."
        )
    declared = feed.column_names
    own = [name for name in declared if is_own_name(name)]
    if own:
        columns = ", ".join(
            f"FeedColumn({suggest_name(name)!r}, header={name!r})" for name in own
        )
        raise DeclarationError(
            f"feed {feed.name} declares the column {own[0]}, which bronze cannot have from a file:"
            f" the name is reserved for {reserved_for(own[0]) or 'the ingest'}.",
            next_step=f"Give it another name, and declare its name in files: {columns}.",
        )
    headers = [
        column.header
        for column in feed.declared_columns
        if column.header is not None and column.header.lower() != column.name.lower()
    ]
    lowered = [nfc(name).lower() for name in (*declared, *headers)]
    twice = sorted(
        {name for name in (*declared, *headers) if lowered.count(nfc(name).lower()) > 1}
    )
    if twice:
        raise DeclarationError(
            f"feed {feed.name} declares {', '.join(twice)} more than once; expected names that"
            " differ in more than case."
        )


def _check_types(feed: Feed) -> None:
    """Check column types: CSV has only text, and people are found by plain values."""
    for column in feed.declared_columns:
        parsed = types.parse(column.type)
        if str(parsed) == "string":
            continue
        if any(uncompressed(name) == "csv" for name in feed.formats):
            raise DeclarationError(
                f"feed {feed.name}: column {column.name} has type {column.type}; expected string,"
                " since CSV files contain text.",
                next_step="Declare the type in the table that is computed from bronze.",
            )
        is_of_people = column.personal or column.name in (feed.subject, feed.moment)
        if is_of_people and (types.is_nested(parsed) or column.type == "binary"):
            raise DeclarationError(
                f"feed {feed.name}: column {column.name} identifies people, or says when a row"
                f" was written, and has type {column.type}; expected a type without parts.",
                next_step="Declare it as string.",
            )
