"""Looking at sample files as a feed would read them: their header, and what each column holds.

Files are read in blocks, by the reader of feeds, so that what cannot be read here would be
refused there for the same reason.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.errors import FileRejected, LakehouseError, UsageError
from lakehouse.ingestion.readers.byte_source import read_head, refuse_damaged, unpacked
from lakehouse.ingestion.readers.csv_first_row import (
    BOM,
    MORE_COLUMNS,
    check_no_separator_line,
    first_row,
    lines_before_header,
)
from lakehouse.ingestion.readers.csv_rows import csv_values
from lakehouse.ingestion.readers.formats import FileReader, open_reader
from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.date_forms import has_milliseconds, has_one_notation
from lakehouse.scaffolding.file_types import (
    bronze_type,
    column_type,
    file_kinds,
    merged,
    texts_of,
)
from lakehouse.scaffolding.key_columns import first_key
from lakehouse.scaffolding.people import why_personal
from lakehouse.scaffolding.repeated_keys import KeyRepeats, RepeatedKey
from lakehouse.scaffolding.uniqueness import NearKey, Uniqueness
from lakehouse.scaffolding.values import value_of
from lakehouse.scaffolding.words import words_of
from lakehouse.tables.escaping import quoted, shell_word, shown
from lakehouse.tables.feed import (
    DELIMITERS,
    FORMATS,
    Feed,
    FeedColumn,
    is_own_name,
    nfc,
    uncompressed,
)

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 1_000_000
"""Rows that are looked at in all; what a key is, is said of these."""
SAMPLE_ROWS_PER_FILE = 200
_FEW_ROWS_PER_FILE = 10
_PUT_BACK = " and put it back"
_YEARS = frozenset({"year", "jahr", "annee", "ano", "anno", "jaar", "rok", "season", "saison"})
Row = dict[str, str | None]


@dataclass(frozen=True)
class LookedAtFile:
    """One file: its columns in their order, and its first rows."""

    path: Path
    file_format: str
    columns: tuple[str, ...]
    rows: int
    first_rows: tuple[Row, ...]


@dataclass
class Inspection:
    """What some files hold."""

    files: list[LookedAtFile] = field(default_factory=list)
    columns: dict[str, ColumnProfile] = field(default_factory=dict)
    delimiter: str = ","
    """What stands between the fields."""
    unique_in_all: frozenset[tuple[str, ...]] = frozenset()
    repeated_key: RepeatedKey | None = None
    """Where there is no key of all files, what is one in each, and comes again in others."""
    near_keys: tuple[NearKey, ...] = ()
    repeated_rows: tuple[int, int] = (0, 0)
    """How many of the first rows are the same as one before, and how many were compared."""
    is_whole: bool = True
    """Whether all rows of all files were looked at."""

    @property
    def rows(self) -> int:
        """Rows that were looked at."""
        return sum(file.rows for file in self.files)

    def is_in_all_files(self, column: str) -> bool:
        """Whether each file has a column."""
        return all(column in file.columns for file in self.files)


def check_files(paths: Sequence[Path]) -> None:
    """Check that files are there, and have the names of their columns in their first row.

    :raises UsageError: a file is not there, or in no format that feeds read.
    :raises LakehouseError: a file cannot be read as a feed would read it.
    """
    opened = [_open(path) for path in paths]
    _check_one_delimiter(opened)
    _check_one_spelling(opened)
    _check_one_kind(opened)


def inspect_files(paths: Sequence[Path], *, most_rows: int = MOST_ROWS) -> Inspection:
    """Look at files of one kind, of which each has the names of its columns in its first row.

    :raises UsageError: a file is not there, or in no format that feeds read.
    :raises LakehouseError: a file cannot be read as a feed would read it; no value of it is in
        the message.
    """
    opened = [_open(path) for path in paths]
    delimiter = _check_one_delimiter(opened)
    _check_one_spelling(opened)
    opened = _check_one_kind(opened)
    names = dict.fromkeys(name for file in opened for name in file.names)
    types = {name: of_type for file in opened for name, of_type in file.types.items()}
    profiles = {name: ColumnProfile(name, types.get(name, "")) for name in names}
    found = Inspection(columns=profiles, delimiter=delimiter)
    uniqueness = Uniqueness(tuple(names))
    for file in opened:
        left = most_rows - found.rows
        found.files.append(_look(file, found.columns, uniqueness, left))
        found.is_whole &= found.files[-1].rows < left
    if not found.rows:
        names_text = ", ".join(shown(path.name) for path in paths)
        raise LakehouseError(
            f"{names_text}: there is no row; expected some, to tell what the columns hold.",
            next_step="Give files with rows.",
        )
    found.unique_in_all = uniqueness.in_all_files
    found.repeated_key = _repeated_key(opened, found, uniqueness, most_rows)
    found.near_keys = uniqueness.near_keys
    found.repeated_rows = uniqueness.repeated_rows
    return found


@dataclass(frozen=True)
class _File:
    path: Path
    file_format: str
    names: tuple[str, ...]
    delimiter: str
    kinds: Mapping[str, Any] = field(default_factory=dict)
    """Of a file that has types, the kind of each column."""
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def feed(self) -> Feed:
        columns = [_column(self, at, name) for at, name in enumerate(self.names)]
        return Feed(
            "sample",
            columns,
            table="bronze.sample",
            delimiter=self.delimiter,
            formats=[self.file_format],
        )


def _column(file: _File, at: int, name: str) -> FeedColumn:
    """Return a column as a feed can have it, whose own columns have other names."""
    of_type = bronze_type(file.types.get(name, ""))
    if is_own_name(name):
        return FeedColumn(f"own_name_{at}", header=name, type=of_type)
    return FeedColumn(name, type=of_type)


def _open(path: Path) -> _File:
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
            next_step=(
                "Save or rename it so: commas, semicolons, tabs or bars between the fields, UTF-8,"
                " names in the first row."
            ),
        )
    if uncompressed(formats[0]) != "csv":
        return _open_typed(path, formats[0])
    names, delimiter = _header(path, formats[0])
    return _File(path, formats[0], names, delimiter)


def _open_typed(path: Path, file_format: str) -> _File:
    """Open a file whose columns have types and need no header row."""
    with _explained(path):
        kinds = file_kinds(path, file_format, MOST_ROWS)
    lowered = Counter(name.lower() for name in kinds)
    twice = [quoted(name) for name in kinds if lowered[name.lower()] > 1]
    if twice or not kinds:
        raise LakehouseError(
            f"{shown(path.name)} has {', '.join(twice) or 'no columns'}; expected columns whose"
            " names differ in more than case.",
            next_step="Rename all but one." if twice else "Give files with rows.",
        )
    return _File(path, file_format, tuple(kinds), ",", kinds)


def _check_one_kind(files: Sequence[_File]) -> list[_File]:
    """Return the files with the types of their columns in all files.

    :raises LakehouseError: some files are CSV and some are not; names two of them.
    """
    csv: list[_File] = []
    others: list[_File] = []
    for file in files:
        (others if file.kinds else csv).append(file)
    if csv and others:
        raise LakehouseError(
            f"{shown(csv[0].path.name)} is CSV, and {shown(others[0].path.name)} is not;"
            " expected files of one format.",
            next_step="Make a feed of each format.",
        )
    kinds: Any = reduce(merged, (file.kinds for file in others), None)
    return [
        replace(
            file,
            types={name: column_type(kinds[name], file.file_format) for name in file.kinds},
        )
        for file in files
    ]


def _check_one_delimiter(files: Sequence[_File]) -> str:
    """Return what stands between the fields.

    :raises LakehouseError: it is not the same in all files; names two of them.
    """
    # Of a file with one column nobody knows.
    telling = [file for file in files if len(file.names) > 1] or list(files)
    ((usual, _),) = Counter(file.delimiter for file in telling).most_common(1)
    first = next(file for file in telling if file.delimiter == usual)
    for file in telling:
        if file.delimiter != first.delimiter:
            raise LakehouseError(
                f"{shown(file.path.name)} is separated by {DELIMITERS[file.delimiter]}, and"
                f" {shown(first.path.name)} by {DELIMITERS[first.delimiter]}; expected one of both"
                " in all files of a feed.",
                next_step="Make a feed of each kind.",
            )
    return first.delimiter


def _check_one_spelling(files: Sequence[_File]) -> None:
    """Check that no two files spell one column differently: a feed could not have both.

    :raises LakehouseError: names the files, and both spellings.
    """
    known: dict[str, tuple[str, Path]] = {}
    for file in files:
        for name in file.names:
            first, path = known.setdefault(name.strip().lower(), (name, file.path))
            if name != first:
                raise LakehouseError(
                    f"{shown(file.path.name)} has a column {quoted(name)}, and"
                    f" {shown(path.name)} has {quoted(first)}; expected one spelling, since a"
                    " feed takes them for one column and rejects the other.",
                    next_step="Rename it in one of them, or leave that file out.",
                )


def _header(path: Path, file_format: str) -> tuple[tuple[str, ...], str]:
    """Return the names of a file's columns, and what stands between them: that which gives most
    names.
    """
    with _explained(path), path.open("rb") as file:
        content = unpacked(file, file_format)
        head = refuse_damaged(lambda: read_head(content)).removeprefix(BOM).lstrip(b"\r\n")
        check_no_separator_line(head)
        by_delimiter = {mark: _names(head, mark) for mark in DELIMITERS}
        # The first of those with the most names.
        delimiters = sorted(DELIMITERS, key=lambda mark: -len(by_delimiter[mark]))
        _check_no_lines_before(head, delimiters)
    delimiter = delimiters[0]
    names = by_delimiter[delimiter]
    if not any(names):
        raise LakehouseError(
            f"{shown(path.name)} has no first row that can be read; expected the names of its"
            " columns.",
            next_step="Put the column names in the first row, separated by commas.",
        )
    _check_names(path, names)
    return names, delimiter


def _names(head: bytes, delimiter: str) -> tuple[str, ...]:
    row = first_row(head, MORE_COLUMNS, delimiter)
    return tuple(map(nfc, csv_values(row, delimiter))) if row else ()


def _check_no_lines_before(head: bytes, delimiters: Sequence[str]) -> None:
    """Check that the first lines are part of the table: a title and comments have fewer fields.

    :param delimiters: the likely one first.
    :raises FileRejected: names the line that is like a header.
    """
    lines = {number: line for number, line in enumerate(head.splitlines()[:100], 1) if line}
    for delimiter in delimiters if lines else ():
        rows = [csv_values(line, delimiter) for line in lines.values()]
        fields = [len(row) for row in rows]
        is_comment = rows[0][0].startswith("#") and any(map(_has_values, rows[2:]))
        first = fields.index(max(fields)) or int(is_comment)
        is_table = len(rows) > first + 1 and len({*fields[first:]}) == 1
        if first and is_table and not _has_values(rows[first]):
            number = [*lines][first]
            raise lines_before_header(f"a header in line {number}", number - 1)
        if fields[0] > 1 and len({*fields}) == 1:
            return


def _has_values(row: Sequence[str]) -> bool:
    """Whether a row has numbers or dates, other than years, which headers may have."""
    values = [value_of(text) for text in row if not re.fullmatch("(?:1[89]|20)[0-9]{2}", text)]
    return any(value.form not in ("text", "boolean") for value in values)


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Check that a first row holds the names of columns, as far as that can be seen.

    :raises LakehouseError: names the file and what was found; not the row, which may hold
        values of people.
    """
    owner = f"The first row of {shown(path.name)}"
    if "\ufffd" in "".join(names):
        raise LakehouseError(f"{owner} is not UTF-8.", next_step=_convert(path))
    values = [value_of(name) for name in names]
    has_people = any(value.looks_like in ("email", "phone") for value in values)
    others = sum(value.form not in ("text", "boolean") for value in values)
    if has_people or 2 * others > len(names):
        raise LakehouseError(
            f"{owner} holds numbers, dates or addresses; expected the names of its columns.",
            next_step="Put the column names in the first row, separated by commas.",
        )
    lowered = [name.strip().lower() for name in names]
    unnamed = [str(at) for at, name in enumerate(lowered, start=1) if not name]
    # One may have no name, as numbers of rows that a tool writes before each.
    if len(unnamed) > 1:
        raise LakehouseError(
            f"{owner} names none of the columns {', '.join(unnamed)} of {len(names)}; expected"
            " no more than one without a name.",
            next_step="Name them, leave the columns out, or delete the lines before the header.",
        )
    twice = sorted({quoted(name) for name in names if lowered.count(name.strip().lower()) > 1})
    if twice:
        raise LakehouseError(
            f"{owner} names {', '.join(twice)} more than once, where case is ignored; expected"
            " each name once.",
            next_step="Rename all but one.",
        )


def _look(
    file: _File, columns: dict[str, ColumnProfile], uniqueness: Uniqueness, most_rows: int
) -> LookedAtFile:
    rows = 0
    first_rows: list[Row] = []
    with _explained(file.path), _with_row_number(file, most_rows):
        for batch in _read(file, most_rows, use_threads=True):
            rows += batch.num_rows
            first_rows += _rows(batch, SAMPLE_ROWS_PER_FILE - len(first_rows))
            _add(batch, columns, uniqueness)
    for name in file.names:
        columns[name].end_of_file()
    uniqueness.end_of_file()
    return LookedAtFile(file.path, file.file_format, file.names, rows, tuple(first_rows))


def _repeated_key(
    files: Sequence[_File], found: Inspection, uniqueness: Uniqueness, most_rows: int
) -> RepeatedKey | None:
    """Look once more at the rows that were looked at, where the key comes again in another file:
    only now it is known which columns are dates.
    """
    # A file of few rows says nothing by having none twice.
    if found.rows < _FEW_ROWS_PER_FILE * len(files):
        return None
    if first_key(found.columns, found.rows, uniqueness.in_all_files):
        return None
    repeated = uniqueness.in_each_file - uniqueness.in_all_files
    key = first_key(found.columns, found.rows, repeated)
    if not key:
        return None
    beside = [name for name, profile in found.columns.items() if _tells_when(found, profile)]
    look = KeyRepeats(key, beside, tuple(found.columns))
    for file in files:
        with _explained(file.path):
            for batch in _read(file, most_rows, use_threads=True):
                most_rows -= batch.num_rows
                look.add(_texts(batch))
    return look.found


def _tells_when(found: Inspection, profile: ColumnProfile) -> bool:
    """Whether each row says in a column of which day or year it is, and not when somebody was
    born.
    """
    is_filled = 0 < profile.rows == profile.filled_rows and found.is_in_all_files(profile.name)
    has_dates = sum(dates.rows for dates in profile.dates.values()) == profile.rows
    # By its texts it may be unique, and not by its values.
    has_dates = (has_dates and has_one_notation(profile)) or has_milliseconds(profile)
    is_year = not _YEARS.isdisjoint(words_of(profile.name)[-1:])
    return is_filled and (has_dates or is_year) and not why_personal(profile)


def _read(file: _File, most_rows: int, *, use_threads: bool) -> "Iterator[pa.RecordBatch]":
    with file.path.open("rb") as content:
        reader = open_reader(file.feed, file.file_format, content, use_threads=use_threads)
        for batch in _batches(reader, most_rows):
            yield batch.rename_columns(list(file.names))


@contextmanager
def _with_row_number(file: _File, most_rows: int) -> Iterator[None]:
    """Say of a file that is refused in which row: read once more, by what counts them."""
    try:
        yield
    except FileRejected:
        for _ in _read(file, most_rows, use_threads=False):
            pass
        raise


def _batches(reader: FileReader, most_rows: int) -> "Iterator[pa.RecordBatch]":
    """Give the rows of a file until there are enough."""
    batches = reader.batches()
    try:
        while most_rows > 0 and (batch := next(batches, None)) is not None:
            yield batch.slice(0, most_rows)
            most_rows -= batch.num_rows
    finally:
        # Closes what the reader reads ahead, before the file under it is closed.
        batches.close()  # type: ignore[attr-defined]


def _rows(batch: "pa.RecordBatch", most: int) -> list[Row]:
    texts = _texts(batch.slice(0, max(0, most)))
    return [dict(zip(texts, row, strict=True)) for row in zip(*texts.values(), strict=True)]


def _texts(batch: "pa.RecordBatch") -> dict[str, list[str | None]]:
    return {name: texts_of(batch.column(name)) for name in batch.schema.names}


def _add(
    batch: "pa.RecordBatch", columns: dict[str, ColumnProfile], uniqueness: Uniqueness
) -> None:
    values = _texts(batch)
    for name, texts in values.items():
        columns[name].add(Counter(texts))
    uniqueness.add(values)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except FileRejected as error:
        raise LakehouseError(
            f"{shown(path.name)} cannot be read as a feed would read it: {error.args[0]}",
            next_step=_next_step(error, path),
        ) from None
    except OSError as error:
        raise LakehouseError(
            f"{shown(str(path))} cannot be read: {error.strerror or error}."
        ) from error


def _next_step(error: FileRejected, path: Path) -> str:
    """Say what to do with a file that lies where it is, and in no inbox."""
    is_other_encoding = error.reason == "not UTF-8"
    return _convert(path) if is_other_encoding else error.next_step.replace(_PUT_BACK, "")


def _convert(path: Path) -> str:
    word = shell_word(str(path))
    return f"Save it as UTF-8, as by `iconv -f windows-1252 -t utf-8 {word} > other.csv`."
