"""Sample files of a feed, read by the reader of feeds.

A file that cannot be read here would be rejected by the feed for the same reason.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse.errors import FileRejected, LakehouseError, UsageError
from lakehouse.ingestion.readers.arrow_types import text_of
from lakehouse.ingestion.readers.byte_source import read_head, refuse_damaged, unpacked
from lakehouse.ingestion.readers.csv_first_row import (
    BOM,
    MORE_COLUMNS,
    check_no_separator_line,
    first_row,
)
from lakehouse.ingestion.readers.csv_rows import csv_values
from lakehouse.ingestion.readers.file_formats import open_reader
from lakehouse.scaffolding.file_types import (
    Types,
    bronze_type,
    column_type,
    common_types,
    file_types,
)
from lakehouse.scaffolding.sampled_column import EMAIL, PHONE
from lakehouse.tables.feed import (
    DELIMITERS,
    FORMATS,
    Feed,
    FeedColumn,
    is_own_name,
    nfc,
    uncompressed,
)
from lakehouse.tables.quoting import quoted, shell_word, shown

MAX_ROWS = 1_000_000
"""Rows that are read in total."""
FILE_NUMBER = "\0file"
"""Name of the column of `Samples.texts` with the index of each row's file."""
_VALUE = re.compile(r"\s*[+-]?[0-9][0-9.,:/ TZ+-]*")
"""A number or a date."""
_YEAR = re.compile("(?:1[89]|20)[0-9]{2}")


@dataclass(frozen=True)
class SampleFile:
    """A file with the names of its columns, and their types if the format has types."""

    path: Path
    file_format: str
    names: tuple[str, ...]
    delimiter: str = ","
    arrow_types: Types = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def feed(self) -> Feed:
        """A feed that reads the file."""
        return Feed(
            "sample",
            [self._column(at, name) for at, name in enumerate(self.names)],
            table="bronze.sample",
            delimiter=self.delimiter,
            formats=[self.file_format],
        )

    def _column(self, at: int, name: str) -> FeedColumn:
        own_type = bronze_type(self.types.get(name, ""))
        if is_own_name(name):
            return FeedColumn(f"own_name_{at}", header=name, type=own_type)
        return FeedColumn(name, type=own_type)


@dataclass(frozen=True)
class Samples:
    """The rows of files of one kind; all values are texts."""

    files: tuple[SampleFile, ...]
    texts: pa.Table
    is_complete: bool
    """Whether all rows of all files were read."""

    @property
    def names(self) -> list[str]:
        """The columns of all files."""
        return self.texts.column_names[:-1]

    @property
    def delimiter(self) -> str:
        """The delimiter of CSV files."""
        return self.files[0].delimiter

    @property
    def types(self) -> dict[str, str]:
        """The type of each column in files that have types."""
        return {name: kind for file in self.files for name, kind in file.types.items()}

    def is_in_all_files(self, column: str) -> bool:
        """Whether each file has a column."""
        return all(column in file.names for file in self.files)


def open_samples(paths: Sequence[Path]) -> list[SampleFile]:
    """Read the header or the schema of each file.

    :raises UsageError: a file does not exist, or has no format of feeds.
    :raises LakehouseError: a file cannot be read, or two files do not fit one feed; the message
        contains no value of a file.
    """
    files = [_open(path) for path in paths]
    _check_alike(files, ["typed" if file.arrow_types else "CSV" for file in files])
    # A file with one column has any delimiter.
    wide = [file for file in files if len(file.names) > 1] or files
    _check_alike(wide, [f"separated by {DELIMITERS[file.delimiter]}" for file in wide])
    _check_one_spelling(files)
    return [replace(file, delimiter=wide[0].delimiter) for file in _with_types(files)]


def read_samples(files: Sequence[SampleFile], *, max_rows: int = MAX_ROWS) -> Samples:
    """Read the rows of files.

    :raises LakehouseError: a file cannot be read as the feed would read it, or there is no row;
        the message contains no value of a file.
    """
    batches: list[pa.Table] = []
    remaining = max_rows
    for number, file in enumerate(files):
        with _explained(file.path), _with_row_number(file, remaining):
            for batch in _batches(file, remaining, use_threads=True):
                remaining -= batch.num_rows
                numbers = pa.array([number] * batch.num_rows, pa.int32())
                batches.append(batch.append_column(FILE_NUMBER, numbers))
    texts = pa.concat_tables(batches, promote_options="default") if batches else None
    if texts is None or not texts.num_rows:
        names = ", ".join(shown(file.path.name) for file in files)
        raise LakehouseError(
            f"{names}: there is no row; expected rows, from which types are guessed.",
            next_step="Give files with rows.",
        )
    columns = [name for name in texts.column_names if name != FILE_NUMBER]
    texts = texts.select([*columns, FILE_NUMBER])
    return Samples(tuple(files), texts, is_complete=remaining > 0)


@contextmanager
def _with_row_number(file: SampleFile, max_rows: int) -> Iterator[None]:
    """Read a rejected file again without threads: this takes longer, and counts the rows."""
    try:
        yield
    except FileRejected:
        for _ in _batches(file, max_rows, use_threads=False):
            pass
        raise


def _batches(file: SampleFile, max_rows: int, *, use_threads: bool) -> Iterator[pa.Table]:
    with file.path.open("rb") as content:
        reader = open_reader(file.feed, file.file_format, content, use_threads=use_threads)
        batches = reader.batches()
        try:
            while max_rows > 0 and (batch := next(batches, None)) is not None:
                rows = batch.slice(0, max_rows)
                max_rows -= rows.num_rows
                yield pa.table([_texts(column) for column in rows.columns], list(file.names))
        finally:
            # Stops the threads that read ahead before the file is closed.
            batches.close()  # type: ignore[attr-defined]


def _texts(column: Any) -> Any:
    if pa.types.is_binary(column.type):
        return pa.array([v if v is None else v.hex() for v in column.to_pylist()], pa.string())
    return text_of(column)


def _open(path: Path) -> SampleFile:
    formats = [name for name in FORMATS if path.name.lower().endswith(f".{name}")]
    if not path.is_file():
        what = "a folder" if path.is_dir() else "not there"
        raise UsageError(
            f"{shown(str(path))} is {what}; expected a file.",
            next_step="Name the files, such as folder/*.csv.",
        )
    if not formats:
        raise UsageError(
            f"{shown(path.name)} is in no format that feeds read; expected a name that ends in"
            f" {' or '.join(f'.{name}' for name in FORMATS)}.",
            next_step="Convert or rename it. CSV needs UTF-8, and names in the first row.",
        )
    with _explained(path):
        if uncompressed(formats[0]) != "csv":
            return _open_typed(path, formats[0])
        return _open_csv(path, formats[0])


def _open_typed(path: Path, file_format: str) -> SampleFile:
    types = file_types(path, file_format, MAX_ROWS)
    repeated = _repeated(types)
    if repeated or not types:
        raise LakehouseError(
            f"{shown(path.name)} has {', '.join(repeated) or 'no columns'}; expected columns"
            " whose names differ in more than case.",
            next_step="Rename all but one." if repeated else "Give files with rows.",
        )
    return SampleFile(path, file_format, tuple(types), arrow_types=types)


def _open_csv(path: Path, file_format: str) -> SampleFile:
    with path.open("rb") as file:
        content = unpacked(file, file_format)
        head = refuse_damaged(lambda: read_head(content)).removeprefix(BOM).lstrip(b"\r\n")
    check_no_separator_line(head)
    names = {mark: _names(head, mark) for mark in DELIMITERS}
    # The delimiter that gives most names; the first one of several.
    delimiter = max(DELIMITERS, key=lambda mark: len(names[mark]))
    _check_names(path, names[delimiter])
    return SampleFile(path, file_format, names[delimiter], delimiter)


def _names(head: bytes, delimiter: str) -> tuple[str, ...]:
    row = first_row(head, MORE_COLUMNS, delimiter)
    return tuple(map(nfc, csv_values(row, delimiter))) if row else ()


def _is_value(text: str) -> bool:
    """Whether a text is a number or a date; headers can contain years."""
    return bool(_VALUE.fullmatch(text)) and not _YEAR.fullmatch(text)


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Check that a first row has names of columns; the error contains none of its values."""
    owner = f"The first row of {shown(path.name)}"
    if not any(names):
        raise LakehouseError(
            f"{shown(path.name)} has no first row that can be read; expected column names.",
            next_step="Put the column names in the first row, separated by commas.",
        )
    if "\ufffd" in "".join(names):
        raise LakehouseError(f"{owner} is not UTF-8.", next_step=_convert(path))
    has_people = any(re.fullmatch(f"{EMAIL}|{PHONE}", name) for name in names)
    if has_people or 2 * sum(map(_is_value, names)) > len(names):
        raise LakehouseError(
            f"{owner} holds numbers, dates or addresses; expected the names of its columns.",
            next_step="Put the column names in the first row, separated by commas.",
        )
    unnamed = [str(at) for at, name in enumerate(names, start=1) if not name.strip()]
    # Some tools write the number of each row into a column without a name.
    if len(unnamed) > 1:
        raise LakehouseError(
            f"{owner} names none of the columns {', '.join(unnamed)} of {len(names)}; expected"
            " no more than one without a name.",
            next_step="Name them, remove the columns, or delete the lines before the header.",
        )
    if repeated := _repeated(names):
        raise LakehouseError(
            f"{owner} names {', '.join(repeated)} more than once, where case is ignored;"
            " expected each name once.",
            next_step="Rename all but one.",
        )


def _repeated(names: Any) -> list[str]:
    """Return the names that differ in case only, quoted."""
    counts = Counter(name.strip().lower() for name in names)
    return sorted({quoted(name) for name in names if counts[name.strip().lower()] > 1})


def _with_types(files: Sequence[SampleFile]) -> list[SampleFile]:
    """Return files with the types that their columns have in all files."""
    is_json = uncompressed(files[0].file_format) in ("json", "jsonl")
    types = common_types(file.arrow_types for file in files)
    texts = {name: column_type(kind, is_json=is_json) for name, kind in types.items()}
    return [
        replace(file, types={name: texts[name] for name in file.arrow_types}) for file in files
    ]


def _check_alike(files: Sequence[SampleFile], kinds: Sequence[str]) -> None:
    """Check that all files are of one kind, which `kinds` describes."""
    ((usual, _),) = Counter(kinds).most_common(1)
    example = files[kinds.index(usual)]
    for file, kind in zip(files, kinds, strict=True):
        if kind != usual:
            raise LakehouseError(
                f"{shown(file.path.name)} is {kind}, and {shown(example.path.name)} is {usual};"
                " expected the same in all files of a feed.",
                next_step="Make a feed of each kind.",
            )


def _check_one_spelling(files: Sequence[SampleFile]) -> None:
    """Check that no two files spell one column differently."""
    known: dict[str, tuple[str, Path]] = {}
    for file in files:
        for name in file.names:
            first, path = known.setdefault(name.strip().lower(), (name, file.path))
            if name != first:
                raise LakehouseError(
                    f"{shown(file.path.name)} has a column {quoted(name)}, and"
                    f" {shown(path.name)} has {quoted(first)}; expected one spelling, since a"
                    " feed compares names without case and spaces.",
                    next_step="Rename it in one of them, or leave that file out.",
                )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Name the file that cannot be read."""
    try:
        yield
    except FileRejected as error:
        is_other_encoding = error.reason == "not UTF-8"
        next_step = error.next_step.replace(" and put it back", "")
        raise LakehouseError(
            f"{shown(path.name)} cannot be read as a feed would read it: {error.args[0]}",
            next_step=_convert(path) if is_other_encoding else next_step,
        ) from None
    except OSError as error:
        raise LakehouseError(
            f"{shown(str(path))} cannot be read: {error.strerror or error}."
        ) from error


def _convert(path: Path) -> str:
    word = shell_word(str(path))
    return f"Save it as UTF-8, as by `iconv -f windows-1252 -t utf-8 {word} > other.csv`."
